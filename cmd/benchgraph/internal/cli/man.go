package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// manual writes the manual page of the program, benchgraph.1, in the macros of man(7). It has the help of all commands.
func (t *Table) manual(w io.Writer) error {
	var b strings.Builder
	name := strings.ToUpper(t.Program)
	fmt.Fprintf(&b, ".TH %s 1 \"\" %s\n.ad l\n.nh\n", name, quoted(t.Program+" "+t.Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", t.Program,
		roff(strings.TrimSuffix(strings.TrimPrefix(t.Summary, t.Program+" "), ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n[global flags] COMMAND [flags] [arguments]\n", t.Program)
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n.SH COMMANDS\n", roff(t.Summary))
	for _, c := range t.Commands {
		fmt.Fprintf(&b, ".SS %s\n%s.\n", quoted(strings.TrimRight(fmt.Sprintf("%s %s [flags] %s", t.Program, c.Name,
			c.Args), " ")), roff(c.Summary))
		if c.Long != "" {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(strings.TrimSpace(c.Long)))
		}
		manualFlags(&b, flagSet(c.Flags))
	}
	fmt.Fprint(&b, ".SH \"GLOBAL FLAGS\"\nThey stand before or after the command.\n")
	manualFlags(&b, flagSet(t.Global))
	for paragraph := range strings.SplitSeq(strings.TrimSpace(t.Footer), "\n\n") {
		if title, text, ok := strings.Cut(paragraph, ": "); ok {
			fmt.Fprintf(&b, ".SH %s\n%s\n", quoted(strings.ToUpper(title)), roff(text))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func manualFlags(w io.Writer, fs *flag.FlagSet) {
	fs.VisitAll(func(f *flag.Flag) {
		spelling, text := spelled(f)
		fmt.Fprintf(w, ".TP\n.B %s\n%s.\n", roff(spelling), roff(text))
	})
}

func quoted(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `\(dq`) + `"` }

// roff escapes text so that man shows it unchanged: hyphens can be copied, and no line is taken for a macro.
func roff(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == ',':
			b.WriteString(`,\:`) // man may break a long list here
		case strings.ContainsRune("'`^~", r), r > unicode.MaxASCII:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, ".") {
			line = `\&` + line
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
