package funcs

import (
	"fmt"
	"strconv"

	pep440 "github.com/aquasecurity/go-pep440-version"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

var (
	described  = lazyregexp.New(`^(.+)-(\d{1,9})-g([0-9a-f]{4,64})$`)
	versionTag = lazyregexp.New(`^(?:[\w-]+-)?([vV]?\d+(?:\.\d+){0,2}[^+]*)(?:\+.*)?$`)
	lastNumber = lazyregexp.New(`^(|.*\D)(\d{1,9})$`)
	devRelease = lazyregexp.New(`\.dev\d+$`)
)

// pep440Version returns the version that setuptools-scm gives to a clean tree with this output of git describe. At a
// tag, it is the version of the tag. Commits later, it is a development version of the guessed next version:
// v0.7.2-240-g0d243f2a is 0.7.3.dev240+g0d243f2a.
func pep440Version(text string) (string, error) {
	parts := described().FindStringSubmatch(text)
	if parts == nil {
		return "", fmt.Errorf("%q is not what git describe --long says: TAG-NUMBER-gHASH", text)
	}
	tag := versionTag().FindStringSubmatch(parts[1])
	if tag == nil {
		return "", fmt.Errorf("the tag %q has no version in it", parts[1])
	}
	parsed, err := pep440.Parse(tag[1])
	if err != nil {
		return "", fmt.Errorf("the tag %q has no version in it that PEP 440 knows", parts[1])
	}
	version := parsed.Public()
	if parts[2] == "0" {
		return version, nil
	}
	last := lastNumber().FindStringSubmatch(version)
	if last == nil || devRelease().MatchString(version) {
		return "", fmt.Errorf("nobody can guess which version follows %s, that of the tag %q", version, parts[1])
	}
	n, err := strconv.Atoi(last[2])
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s%d.dev%s+g%s", last[1], n+1, parts[2], parts[3]), nil
}
