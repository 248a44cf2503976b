package command

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/executor"
)

func realGit(t *testing.T) *Git {
	t.Helper()
	dir := t.TempDir()
	return &Git{Exec: executor.NewHost(executor.HostOptions{Owner: "a test"}), Dir: dir,
		Env: Environment(os.Environ(), dir), Log: io.Discard}
}

func TestAnEnvironmentHoldsNothingThatChangesAResult(t *testing.T) {
	env := Environment([]string{"PATH=/bin", "https_proxy=p", "GIT_DIR=/other", "GIT_INDEX_FILE=/x",
		"GIT_CONFIG_COUNT=1", "LD_PRELOAD=x", "GIT_SSH_COMMAND=mine"}, "/mirror")
	for _, want := range []string{"PATH=/bin", "https_proxy=p", "GIT_DIR=/mirror", "GIT_SSH_COMMAND=mine",
		"GIT_TERMINAL_PROMPT=0"} {
		if !slices.Contains(env, want) {
			t.Errorf("lacks %s", want)
		}
	}
	names := map[string]bool{}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if names[name] {
			t.Errorf("%s is there twice", name)
		}
		names[name] = true
	}
	if names["GIT_INDEX_FILE"] || names["GIT_CONFIG_COUNT"] || names["LD_PRELOAD"] {
		t.Errorf("%v", env)
	}
}

func TestHowGitEndsIsTold(t *testing.T) {
	g := realGit(t)
	if _, err := g.Output(t.Context(), Call{Args: []string{"init", "--quiet", "--bare"}}); err != nil {
		t.Fatal(err)
	}
	_, err := g.Output(t.Context(), Call{Args: []string{"cat-file", "-t", "nothing"}})
	exit, ok := errors.AsType[*ExitError](err)
	if !ok || exit.Status.Code != 128 || err.Error() != "git cat-file: fatal: Not a valid object name nothing" {
		t.Errorf("%v", err)
	}
	if _, err := g.Output(t.Context(), Call{Args: []string{"rev-parse", "--verify", "--quiet", "x"},
		OK: []int{1}}); err != nil {
		t.Errorf("an exit status that is an answer: %v", err)
	}
	enough := errors.New("enough")
	err = g.Stream(t.Context(), Call{Args: []string{"cat-file", "--batch"}, Stdin: strings.Repeat("x\n", 1<<20)},
		func(r *bufio.Reader) error {
			r.ReadString('\n')
			return enough
		})
	if !errors.Is(err, enough) {
		t.Errorf("a reader that stops early: %v", err)
	}
	err = g.Stream(t.Context(), Call{Args: []string{"version"}}, func(r *bufio.Reader) error {
		_, err := r.ReadString(0)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("an output that ends too soon: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	err = g.Stream(ctx, Call{Args: []string{"cat-file", "--batch"}, Stdin: strings.Repeat("x\n", 1<<20)},
		func(r *bufio.Reader) error {
			cancel(why)
			_, err := io.Copy(io.Discard, r)
			return err
		})
	if !errors.Is(err, why) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestTheEndOfALongComplaintIsKept(t *testing.T) {
	var kept tail
	for range 3 {
		kept.Write([]byte(strings.Repeat("x", maxStderr-1)))
	}
	kept.Write([]byte("fatal: it"))
	if s := kept.String(); len(s) != maxStderr || !strings.HasSuffix(s, "xfatal: it") {
		t.Errorf("%d bytes", len(s))
	}
	if got := FirstLine("\nwarning: w\nhint: h\nfatal: it\nmore"); got != "fatal: it" {
		t.Errorf("%q", got)
	}
}
