package hclspec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

// ParseAddress reads kind.name or kind.name["key"], as String writes them. In the key, \" stands for a quote and \\ for
// a backslash.
func ParseAddress(s string) (Address, error) {
	kind, rest, ok := strings.Cut(s, ".")
	if !ok || kind == "" || rest == "" {
		return Address{}, fmt.Errorf("address %q: want kind.name or kind.name[\"key\"]", s)
	}
	name, key, keyed := strings.Cut(rest, `["`)
	a := Address{Kind: kind, Name: name, Keyed: keyed}
	if keyed {
		if key, ok = strings.CutSuffix(key, `"]`); !ok {
			return Address{}, fmt.Errorf("address %q: the key does not end in \"]", s)
		}
		if a.Key, ok = unquote(key); !ok {
			return Address{}, fmt.Errorf("address %q: a quote inside the key is written \\\"", s)
		}
	}
	if name == "" || strings.ContainsAny(kind+name, "\"\x00") {
		return Address{}, fmt.Errorf("address %q: want kind.name or kind.name[\"key\"]", s)
	}
	return a, nil
}

// String returns the address in the form that ParseAddress reads; empty for the zero Address.
func (a Address) String() string {
	switch {
	case a == Address{}:
		return ""
	case !a.Keyed:
		return a.Kind + "." + a.Name
	}
	key := a.Key
	if strings.ContainsAny(key, `\"`) {
		key = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key)
	}
	return a.Kind + "." + a.Name + `["` + key + `"]`
}

// Instance returns the address without its kind. It is unique among all instances of one kind.
func (a Address) Instance() string {
	return strings.TrimPrefix(a.String(), a.Kind+".")
}

// TrialAddress returns the address of a trial: a block, counted from 1, of a group of a benchmark. The group is a
// commit, a candidate or an instance.
func TrialAddress(benchmark, group string, block int) Address {
	return Address{Kind: "trial", Name: benchmark, Key: group + "#" + strconv.Itoa(block), Keyed: true}
}

// Trial returns the arguments of TrialAddress; block is 0 if the address is not that of a trial.
func (a Address) Trial() (group string, block int) {
	at := strings.LastIndexByte(a.Key, '#')
	if at < 0 {
		return "", 0
	}
	block, err := strconv.Atoi(a.Key[at+1:])
	if err != nil {
		return "", 0
	}
	return a.Key[:at], block
}

// Compare orders addresses by kind, name and key.
func (a Address) Compare(b Address) int {
	c := cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key))
	if c == 0 && a.Keyed != b.Keyed { // no key comes before an empty key
		c = len(a.String()) - len(b.String())
	}
	return c
}

// unquote removes the backslashes in front of quotes and backslashes. Other backslashes stay, since patterns have them.
// It returns false for a quote without a backslash, and for a backslash at the end.
func unquote(s string) (string, bool) {
	if !strings.ContainsAny(s, `\"`) {
		return s, true
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return "", false
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		case s[i] == '\\' && i+1 == len(s):
			return "", false
		}
		out.WriteByte(s[i])
	}
	return out.String(), true
}

// MatchAddress reports whether an address matches a pattern: an address in which kind, name and key may hold doublestar
// globs. A pattern without a key matches all instances of a block. The error says that the pattern, or the address, is
// malformed.
func MatchAddress(pattern, address string) (bool, error) {
	p, err := ParseAddress(pattern)
	if err != nil {
		return false, err
	}
	a, err := ParseAddress(address)
	if err != nil {
		return false, err
	}
	matches := true
	for _, part := range []struct{ glob, name string }{{p.Kind, a.Kind}, {p.Name, a.Name}, {p.Key, a.Key}} {
		glob, err := project.ParsePattern(part.glob)
		if err != nil {
			return false, fmt.Errorf("address pattern %q: %w", pattern, err)
		}
		matches = matches && (glob.Match(part.name) || part.glob == "" && !p.Keyed)
	}
	return matches && (a.Keyed || !p.Keyed), nil
}

// Refs returns the distinct addresses in the text, in their order.
func (t Text) Refs() []Address {
	var refs []Address
	seen := map[Address]bool{}
	for _, part := range t {
		if part.Ref != (Address{}) && !seen[part.Ref] {
			seen[part.Ref] = true
			refs = append(refs, part.Ref)
		}
	}
	return refs
}

// Expand returns the text with path(a) for every reference a.
func (t Text) Expand(path func(Address) string) string {
	var out strings.Builder
	for _, part := range t {
		if part.Ref != (Address{}) {
			out.WriteString(path(part.Ref))
		} else {
			out.WriteString(part.Literal)
		}
	}
	return out.String()
}

// String returns the text for people: a reference is written as in the file, ${wheel.vllm["22d33bac/human"]}.
func (t Text) String() string {
	return t.Expand(func(a Address) string { return "${" + a.String() + "}" })
}
