package main

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
)

// TestContainers runs the stories below testdata/containers, with the engine at DOCKER_HOST. BENCHGRAPH_VAR_box is an
// image with busybox. BENCHGRAPH_VAR_word must be in the names of images: those with the word are removed in the end.
func TestContainers(t *testing.T) {
	engine := containertest.Engine(t)
	box := containertest.Busybox(t, engine)
	params := scriptParams("testdata/containers")
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		word := "w" + strings.ReplaceAll(filepath.Base(env.WorkDir), "-", "") +
			strconv.FormatInt(time.Now().UnixNano(), 36)
		env.Setenv("DOCKER_HOST", engine.Host())
		env.Setenv("BENCHGRAPH_VAR_box", box)
		env.Setenv("BENCHGRAPH_VAR_word", word)
		env.Defer(func() { removeImages(t, engine, word) })
		return setup(env)
	}
	params.Cmds["held"] = func(ts *testscript.TestScript, neg bool, args []string) { held(ts, engine, neg, args) }
	testscript.Run(t, params)
}

// held waits until the engine has N containers and networks of the project's: held N
func held(ts *testscript.TestScript, engine *container.Engine, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: held N")
	}
	state := filepath.Join(ts.MkAbs("."), ".benchgraph")
	var found []string
	for range 300 {
		found = nil
		_, err := engine.Reap(context.Background(), func(labels map[string]string) bool {
			if labels[container.LabelState] == state {
				found = append(found, labels[container.LabelNode])
			}
			return false
		})
		ts.Check(err)
		if strconv.Itoa(len(found)) == args[0] {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	ts.Fatalf("the engine has %q", found)
}

// removeImages removes the images for nodes with a word in their addresses, base images last.
func removeImages(t *testing.T, engine *container.Engine, word string) {
	for range 5 {
		list, err := engine.Images(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		left := false
		for _, image := range list {
			if strings.Contains(image.Labels[container.LabelNode], word) {
				left = engine.RemoveImage(context.Background(), image.ID) != nil || left
			}
		}
		if !left {
			return
		}
	}
	t.Errorf("images of %s cannot be removed", word)
}
