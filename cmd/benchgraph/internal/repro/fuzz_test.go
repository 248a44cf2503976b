package repro

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/shell/transcript"
)

// Whatever a transcript has, a shell can read its script, or there is no script.
func FuzzScript(f *testing.F) {
	f.Add(`{"work":"/w","scratch":"/s","inputs":[{"address":"a'b","dir":"/in"}],"places":[{"dir":"/w",` +
		`"env":["A=$(x)","B"],"container":{"image":"i'","mounts":[{"Host":"/in","Inside":"/a,b"}]}}],` +
		`"steps":[{"title":"a\nrm -rf /"},` +
		`{"did":["tree","/in","/w/x"]},{"argv":["sh","';rm"],"server":{"http":"/'"}},` +
		`{"argv":["x"],"beside":3},{"stop":3}]}`)
	f.Add(`{"places":[{"container":{"keep":true,"image":"a"}}],"steps":[{"argv":["x"],"files":[{"path":"/a b"}]},` +
		`{"did":["commit","a","--change","CMD []"],"image":"b"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var script string
		var err error
		fuzzing.Frugal(t, len(text), func() {
			var read *transcript.Transcript
			if read, err = transcript.Parse([]byte(text)); err == nil {
				a := Attempt{Transcript: read, Stored: func(cache.Key) (string, bool) { return "", false }}
				script, err = a.Script()
			}
		})
		if err != nil || strings.ContainsRune(script, 0) {
			return
		}
		cmd := exec.Command("sh", "-n", "-s")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, script)
		}
	})
}
