package wheel

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

var (
	described  = lazyregexp.New(`^(?:[0-9A-Za-z_-]+-)?[vV]?([0-9].*)-([0-9]+)-g([0-9a-f]+)$`)
	release    = lazyregexp.New(`^[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?$`)
	developing = lazyregexp.New(`\.dev[0-9]+$`)
	lastNumber = lazyregexp.New(`[0-9]+$`)
)

// Version returns the version that setuptools-scm derives from the output of git describe (TAG-NUMBER-gHASH): that of
// the tag, or the development version of the next one. It is empty if the tag is no version.
func Version(text string) string {
	m := described().FindStringSubmatch(text)
	if m == nil || !release().MatchString(m[1]) {
		return ""
	}
	version, distance, hash := m[1], m[2], m[3]
	if distance == "0" {
		return version
	}
	if base := developing().ReplaceAllString(version, ""); base != version {
		return fmt.Sprintf("%s.dev%s+g%s", base, distance, hash)
	}
	last := lastNumber().FindString(version)
	n, err := strconv.Atoi(last)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s%d.dev%s+g%s", strings.TrimSuffix(version, last), n+1, distance, hash)
}
