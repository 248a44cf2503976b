package sample

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
)

// Asked is the number behind an option of a command, under any of the option's names, such as --num-prompts; 0: no
// number stands there, or there are several ones.
func Asked(c hclspec.Command, options ...string) (asked float64) {
	behind := regexp.MustCompile(`(?:^|\s)(?:` + strings.Join(options, "|") +
		`)(?:=|\s+)["']?([0-9]{1,12})(?:["'\s]|$)`)
	for _, m := range behind.FindAllStringSubmatch(commandLine(c), -1) {
		n, _ := strconv.ParseFloat(m[1], 64) // digits alone
		if asked != 0 && n != asked {
			return 0
		}
		asked = n
	}
	return asked
}
