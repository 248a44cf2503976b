package service_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/jobtest"
	"github.com/benchgraph/benchgraph/executor/modal"
	"github.com/benchgraph/benchgraph/executor/modal/modaltest"
)

// traits are those of a service that ends, logs and lists one container at a time.
var traits = jobtest.Traits{Adds: []string{"HOME=", "MODAL_"}, Container: true, Text: true, Follows: true}

func TestScheduler(t *testing.T) {
	t.Parallel()
	jobtest.Run(t, traits, func(t *testing.T) jobtest.Site {
		s := newSite(t, nil)
		ending := func(state job.State, end func(*modaltest.Sandbox)) jobtest.Ending {
			return jobtest.Ending{State: state, End: func(id job.ID) { end(s.sandbox(t, id)) }}
		}
		return jobtest.Site{
			Client: func() job.Scheduler { return s.client(t) },
			Never:  job.NewID("sb-"+strings.Repeat("9", 22), "never"),
			Dir:    t.TempDir(), Told: s.told, Hold: s.Hold, Silence: s.Server.Silence, Seen: s.Seen,
			Lose: func(made bool, times int) job.Scheduler {
				// the library itself asks four times more
				lost := []modaltest.Fault{{Code: codes.Unavailable, After: made}}
				s.Fail("SandboxCreate", slices.Repeat(lost, 5*times)...)
				return s.Service
			},
			Count: func() jobtest.Count {
				return jobtest.Count{Submits: s.Calls("SandboxCreate"), Details: s.Calls("SandboxWait")}
			},
			Impossible: func(j *job.Job) { j.GPUs = 9 },
			Ends: map[string]jobtest.Ending{
				"time limit": {Time: 500 * time.Millisecond, State: job.Timeout},
				"terminated": ending("CANCELLED", (*modaltest.Sandbox).Terminate),
				"preempted":  ending("PREEMPTED", (*modaltest.Sandbox).Preempt),
				"evicted":    ending(job.OutOfMemory, (*modaltest.Sandbox).Evict),
				"lost":       ending("NODE_FAIL", (*modaltest.Sandbox).Break),
				"forgotten":  ending("", s.Forget),
			},
		}
	})
}

// TestModalItself runs the suite on Modal, where there is an account, without faults. It costs some minutes of a CPU.
func TestModalItself(t *testing.T) {
	t.Parallel()
	id, secret, image := os.Getenv("MODAL_TOKEN_ID"), os.Getenv("MODAL_TOKEN_SECRET"),
		os.Getenv("BENCHGRAPH_TEST_MODAL_IMAGE")
	if id == "" || secret == "" || image == "" {
		t.Skip("there is no account of Modal: MODAL_TOKEN_ID, MODAL_TOKEN_SECRET and BENCHGRAPH_TEST_MODAL_IMAGE, " +
			"the digest of an image with gzip and the commands of coreutils and findutils, are not all set")
	}
	its := traits
	its.Adds = []string{""} // the image has variables of its own
	jobtest.Run(t, its, func(t *testing.T) jobtest.Site {
		return jobtest.Site{Client: func() job.Scheduler {
			c, err := open(t, []string{"MODAL_TOKEN_ID=" + id, "MODAL_TOKEN_SECRET=" + secret},
				modal.Asks{App: "benchgraph-test", Image: image}, func(text string) { t.Log(text) })
			if err != nil {
				t.Fatal(err)
			}
			return c
		}}
	})
}
