package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
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

// TestDoctorNamesTheEngine has two engines that say who they are.
func TestDoctorNamesTheEngine(t *testing.T) {
	t.Parallel()
	for component, want := range map[string]string{"Podman Engine": "Podman 5.4", "Engine": "Docker Engine 5.4"} {
		engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", "1.41")
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"ServerVersion": "5.4", "Components": [{"Name": %q}]}`, component)
		}))
		defer engine.Close()
		var out, diagnostics strings.Builder
		dir := t.TempDir()
		run(t.Context(), []string{"doctor", "-chdir", dir}, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir,
			"DOCKER_HOST=tcp://" + engine.Listener.Addr().String()}, strings.NewReader(""), &out, &diagnostics)
		if !strings.Contains(out.String(), want+", API") {
			t.Errorf("%s: %s%s", component, &out, &diagnostics)
		}
	}
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
