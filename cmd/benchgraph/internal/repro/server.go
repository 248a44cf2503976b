package repro

import (
	"fmt"
	"regexp"

	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/shell/transcript"
)

// serve writes the start of a server, and the wait until it is ready.
func (s *script) serve(i int, step *transcript.Step, place *transcript.Place, line string) {
	number := i + 1
	s.servers[number] = true
	s.uses("stop", "alive")
	r, port := step.Server, s.word(step.Server.Port)
	log := fmt.Sprintf(`"$work/server%d.log"`, number)
	var ready string
	switch {
	case r.Log != "":
		s.uses("pattern")
		pattern := grepFor(r.Log)
		s.line("pattern %s", pattern)
		ready = "grep -q " + pattern + " " + log
	case place.Container != nil:
		s.uses("inside")
		ready = fmt.Sprintf(`inside %d %s %s`, number, port, s.word(r.HTTP))
	case r.HTTP != "":
		s.uses("answers")
		ready = "answers " + s.word("http://127.0.0.1:"+r.Port+r.HTTP)
	default:
		ready = "listens " + port
	}
	if place.Container == nil {
		// In the sandbox of the attempt, the port was free. Here, another program may answer in place of the server.
		s.uses("listens", "unused", "group")
		s.line("unused %s", port)
		line = "group " + line
	}
	s.line(`%s > %s 2>&1 &`, line, log)
	s.line("server%d=$! servers=\"$servers %[1]d\"", number)
	s.line(`until %s 2>/dev/null; do alive %d; sleep 0.2; done`, ready, number)
}

// grepFor returns the options of grep that search for a pattern of RE2. Only Perl's patterns have all parts of RE2 that
// those of POSIX lack.
func grepFor(pattern string) string {
	if _, err := regexp.CompilePOSIX(pattern); err == nil {
		return "-E -e " + sh.Quote(pattern)
	}
	return "-P -e " + sh.Quote(pattern)
}
