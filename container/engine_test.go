package container_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/container/containertest"
)

// Engines of several versions say in several words that containers have a filter of system calls, and users of their
// own.
func TestAnEngineSaysWhetherItFiltersSystemCalls(t *testing.T) {
	for options, want := range map[string]bool{
		`["name=seccomp,profile=default"]`:                                 true, // up to 20.10
		`["name=apparmor","name=seccomp,profile=builtin","name=cgroupns"]`: true,
		`["name=seccomp,profile=/etc/docker/ours.json"]`:                   true,
		`["name=seccomp,profile=unconfined","name=cgroupns"]`:              false,
		`["name=apparmor","name=rootless"]`:                                false,
		`[]`:                                                               false,
	} {
		e := playEngine(t, func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]json.RawMessage{"SecurityOptions": json.RawMessage(options)})
		})
		if info, err := e.Info(t.Context()); err != nil || info.Seccomp != want {
			t.Errorf("%s: %v, %v", options, info.Seccomp, err)
		}
	}
	for options, want := range map[string]bool{
		`["name=seccomp,profile=default","name=userns"]`: true,
		`["name=rootless"]`: false,
		`[]`:                false,
	} {
		e := playEngine(t, func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]json.RawMessage{"SecurityOptions": json.RawMessage(options)})
		})
		if info, err := e.Info(t.Context()); err != nil || info.UsersMapped != want {
			t.Errorf("%s: users are mapped: %v, %v", options, info.UsersMapped, err)
		}
	}
	real := containertest.Engine(t)
	if info, err := real.Info(t.Context()); err != nil || !info.Seccomp {
		t.Errorf("the engine of this machine: %+v, %v", info, err)
	}
}

// An image that the engine does not describe is an error. It would look like an image that runs as root.
func TestAnImageThatTheEngineDoesNotDescribe(t *testing.T) {
	e := playEngine(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"Id": "sha256:1", "RootFS": {}, "Os": "", "Config": {"User": ""},
			"Descriptor": {"digest": "sha256:1"}}`))
	})
	if img, err := e.Image(t.Context(), "box"); err == nil || !strings.Contains(err.Error(), "as whom it runs") {
		t.Errorf("%+v, %v", img, err)
	}
}
