// Package containertest provides tests with a container engine (this machine's, or a separate one that they may
// kill), a small image, and a registry. It talks to engines without package container, which is under test.
package containertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

const answerTime = 30 * time.Second // time limit of a small request

// Environ returns the environment in the form of container.Options.
func Environ() map[string]string {
	all := map[string]string{}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		all[name] = value
	}
	return all
}

// Engine returns the engine at DOCKER_HOST, or the engine of this machine, with a state directory of the test. The test
// fails if it leaves containers or networks. Without an engine, the test is skipped.
func Engine(t testing.TB) *container.Engine {
	t.Helper()
	e := container.Open(container.Options{Environ: Environ(), State: t.TempDir()})
	if err := dial(e.Host()).get("/_ping", nil); err != nil {
		needtest.Missing(t, "no container engine: %v", err)
	}
	t.Cleanup(func() { mustLeaveNothing(t, e) })
	return e
}

// IsPodman reports whether an engine is Podman, whose API differs from Docker's in some respects.
func IsPodman(t testing.TB, e *container.Engine) bool {
	t.Helper()
	var version struct{ Components []struct{ Name string } }
	if err := dial(e.Host()).get("/version", &version); err != nil {
		t.Fatal(err)
	}
	return len(version.Components) > 0 && version.Components[0].Name == "Podman Engine"
}

// mustLeaveNothing removes what a test left in e, and fails the test for it.
func mustLeaveNothing(t testing.TB, e *container.Engine) {
	t.Helper()
	for _, left := range dial(e.Host()).sweep(t, container.LabelState+"="+e.State()) {
		t.Errorf("left in the engine: %s", left)
	}
}

type api struct {
	http http.Client
	base string
}

// dial returns the API at host, as in DOCKER_HOST.
func dial(host string) api {
	network, address, _ := strings.Cut(host, "://")
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return api{http.Client{Transport: &http.Transport{DialContext: connect, DisableKeepAlives: true}}, "http://engine"}
}

// do makes a request and decodes the answer into v; if v is nil, it discards the answer.
func (a api) do(method, path string, v any) error { return a.within(answerTime, method, path, nil, v) }

// within is do with its own time limit and request body.
func (a api) within(limit time.Duration, method, path string, body io.Reader, v any) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return err
	}
	answer, err := a.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	case v == nil:
		return nil
	}
	return json.Unmarshal(text, v)
}

func (a api) get(path string, v any) error { return a.do(http.MethodGet, path, v) }

// filters encodes the filters of a list request.
func filters(all map[string][]string) string {
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings
	}
	return "filters=" + url.QueryEscape(string(text))
}

// sweep removes the containers and then the networks that have all the labels, and returns their names. Without
// labels, it removes all containers, and all networks except the engine's own.
func (a api) sweep(t testing.TB, labels ...string) []string {
	t.Helper()
	var containers []struct{ ID, Status, Command string }
	var networks []struct{ ID, Name string }
	if err := a.get("/containers/json?all=1&"+filters(map[string][]string{"label": labels}), &containers); err != nil {
		t.Error(err)
	}
	var found []string
	for _, c := range containers {
		found = append(found, fmt.Sprintf("container %.12s (%s): %s", c.ID, c.Status, c.Command))
		err := a.do(http.MethodDelete, "/containers/"+c.ID+"?force=1&v=1", nil)
		if err != nil && !strings.Contains(err.Error(), "already in progress") {
			t.Error(err)
		}
	}
	choice := map[string][]string{"label": labels}
	if len(labels) == 0 {
		choice = map[string][]string{"type": {"custom"}} // Podman does not have this filter
	}
	if err := a.get("/networks?"+filters(choice), &networks); err != nil {
		t.Error(err)
	}
	for _, n := range networks {
		found = append(found, "network "+n.Name)
		if err := a.do(http.MethodDelete, "/networks/"+n.ID, nil); err != nil {
			t.Error(err)
		}
	}
	return found
}
