package endpoint_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/container/endpoint"
)

func TestTheEngineIsTheOneOfDocker(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(home, ".docker", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	is := func(host, wrong string, environ ...string) {
		t.Helper()
		all := map[string]string{"HOME": home}
		for _, v := range environ {
			name, value, _ := strings.Cut(v, "=")
			all[name] = value
		}
		e, err := endpoint.Find(all)
		if e.Host != host || (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%v: %s, %v; want %s, %s", environ, e.Host, err, host, wrong)
		}
	}
	context := func(name, text string) {
		write(fmt.Sprintf("contexts/meta/%x/meta.json", sha256.Sum256([]byte(name))), text)
	}
	const usual = "unix:///var/run/docker.sock"
	is(usual, "")
	is(usual, "", "HOME=")
	write("config.json", `{"auths": {}}`)
	is(usual, "")
	context("rootless", `{"Name":"rootless","Endpoints":{"docker":{"Host":"unix:///run/user/7/docker.sock"}}}`)
	context("loose", `{"Endpoints":{"docker":{"Host":"tcp://h:2376","SkipTLSVerify":true}}}`)
	context("other", `{"Endpoints":{"kubernetes":{}}}`)
	context("broken", `{`)
	write("config.json", `{"currentContext": "rootless"}`)
	is("unix:///run/user/7/docker.sock", "")
	is("tcp://h:1", "", "DOCKER_HOST=tcp://h:1", "DOCKER_CONTEXT=rootless")
	is(usual, "", "DOCKER_CONTEXT=default")
	is("context loose", "does not verify", "DOCKER_CONTEXT=loose")
	is("context other", "names no engine", "DOCKER_CONTEXT=other")
	is("context broken", "not the JSON", "DOCKER_CONTEXT=broken")
	is("context gone", "no such context in "+home, "DOCKER_CONTEXT=gone")
	write("config.json", `{"currentContext": 3}`)
	is("context ", "config.json: not the JSON")
}
