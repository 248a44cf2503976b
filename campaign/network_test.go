package campaign_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/container/containertest"
)

// outward is a project in which every command that may run in a container tries to reach another machine.
const outward = `
image "built_WORD" {
  build { context = "docker" }
  network = BUILDS
}
image "WORD" {
  from    = "BASE"
  fixes   = [fix.ask]
  verify  = "ASK || true"
  network = NETWORK
}
fix "ask" { run = ["ASK > /etc/asked || true"] }
task "asks" {
  image   = image.WORD
  command = "ASK > $OUT/asked || true"
  network = NETWORK
}
wheel "asks" {
  build {
    image   = image.WORD
    command = "ASK > $OUT/asked || true"
    network = NETWORK
  }
}
benchmark "alone" {
  image   = image.WORD
  command = "ASK || true; echo m 1"
  network = NETWORK
  design { samples = 1 }
  metrics {
    metric "m" { match = "m ([0-9]+)" }
  }
}
benchmark "served" {
  image   = image.WORD
  network = NETWORK
  server {
    command = "ASK || true; echo up; exec httpd -f -p 127.0.0.1:$PORT"
    ready { log = "^up$" }
  }
  command = "ASK || true; echo m 1"
  design { samples = 1 }
  metrics {
    metric "m" { match = "m ([0-9]+)" }
  }
}
`

// With network = true, a command in a container can reach other machines; without it, none can.
func TestOnlyBlocksWithNetworkReachOtherMachines(t *testing.T) {
	ask := "nc -w 2 " + containertest.Outside(t) + " </dev/null 2>/dev/null"
	binary, err := os.ReadFile("/bin/busybox")
	must(t, err)
	for _, network := range []bool{true, false} {
		t.Run(fmt.Sprint(network), func(t *testing.T) {
			t.Parallel()
			s := picture(t, nil)
			builds := network || containertest.IsPodman(t, s.engine) // which refuses to build without
			s.write("docker/Dockerfile",
				"FROM scratch\nCOPY busybox /bin/busybox\nSHELL [\"/bin/busybox\", \"sh\", \"-c\"]\n"+
					"RUN /bin/busybox "+ask+" >/asked; echo WORD >/word\n")
			must(t, os.WriteFile(filepath.Join(s.dir, "docker/busybox"), binary, 0o755))
			s.write("benchmarks.hcl", strings.NewReplacer("ASK", ask, "NETWORK", fmt.Sprint(network),
				"BUILDS", fmt.Sprint(builds)).Replace(outward))
			s.mustDo()
			image := "image." + s.word
			got := map[string]string{
				"a build of an image": s.inside(s.image("image.built_"+s.word).ID, "/bin/busybox", "cat", "/asked"),
				"a fix of an image":   s.inside(s.image(image).ID, "cat", "/etc/asked"),
				"a task":              s.result("task.asks", "asked"),
				"a build":             s.result("wheel.asks", "asked"),
				"a benchmark":         s.result(`trial.alone["#1"]`, "run/stdout"),
				"a client":            s.result(`trial.served["#1"]`, "run/stdout"),
				"a server":            s.result(`trial.served["#1"]`, "run/server.log"),
				"what is verified":    s.log(image)[strings.LastIndex(s.log(image), "$ sh -euc"):],
			}
			for who, text := range got {
				want := network || builds && who == "a build of an image"
				if reached := strings.Contains(text, "the world\n"); reached != want {
					t.Errorf("%s: %q", who, text)
				}
			}
		})
	}
}
