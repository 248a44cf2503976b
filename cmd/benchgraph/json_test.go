package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// shapes are the sections of docs/json.md by their anchors: fields by path.
type shapes map[string]map[string]*shape

// shape is a row of docs/json.md.
type shape struct {
	open bool   // what lies below is not told
	of   string // anchor of the section that tells what lies below; empty: this one
	seen bool
}

func readShapes(ts *testscript.TestScript) shapes {
	text, err := os.ReadFile("../../docs/json.md")
	ts.Check(err)
	row := regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]+) \\|")
	link := regexp.MustCompile(`\(#([a-z-]+)\)`)
	all, section := shapes{}, ""
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-")
			all[section] = map[string]*shape{}
		} else if m := row.FindStringSubmatch(line); m != nil {
			s := &shape{open: strings.HasSuffix(m[2], "any") || m[2] == "map"}
			if to := link.FindStringSubmatch(m[2]); to != nil {
				s.of = to[1]
			}
			all[section][m[1]] = s
		}
	}
	return all
}

// walk notes the fields of a section that a value has, and returns those that the value lacks.
func (all shapes) walk(section, at string, v any) (missing []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			missing = append(missing, all.walk(section, at, item)...)
		}
	case map[string]any:
		for name, below := range v {
			path := strings.TrimPrefix(at+"."+name, ".")
			in, s := section, all[section][path]
			if s == nil && section == "events" && v["type"] == "verdict" { // it has the fields of its row
				in, s = "row", all["row"][path]
			}
			if s == nil {
				missing = append(missing, section+": "+path)
				continue
			}
			s.seen = true
			if s.of != "" {
				missing = append(missing, all.walk(s.of, "", below)...)
			} else if !s.open {
				missing = append(missing, all.walk(in, path, below)...)
			}
		}
	}
	return missing
}

// documented checks that docs/json.md names every field of JSON files, and that the files have every field that it
// names: documented UNREACHED SECTION=FILE... UNREACHED lists fields that the files need not have, as SECTION: FIELD.
func documented(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: documented UNREACHED SECTION=FILE...")
	}
	all := readShapes(ts)
	var wrong []string
	for _, arg := range args[1:] {
		section, file, _ := strings.Cut(arg, "=")
		if all[section] == nil {
			ts.Fatalf("docs/json.md has no section %s", section)
		}
		in := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
		for in.More() {
			var v any
			ts.Check(in.Decode(&v))
			for _, field := range all.walk(section, "", v) {
				wrong = append(wrong, fmt.Sprintf("%s has a field that docs/json.md lacks: %s", file, field))
			}
		}
	}
	unreached := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	for section, fields := range all {
		for path, s := range fields {
			name := section + ": " + path
			if !s.seen && !slices.Contains(unreached, name) {
				wrong = append(wrong, "docs/json.md has a field that no file has: "+name)
			}
		}
	}
	slices.Sort(wrong)
	if wrong = slices.Compact(wrong); len(wrong) > 0 {
		ts.Fatalf("%s", strings.Join(wrong, "\n"))
	}
}
