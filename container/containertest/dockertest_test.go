package containertest_test

import (
	"net"
	"net/http"
	"testing"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
)

func TestTheImageIsMadeOnce(t *testing.T) {
	e := containertest.Engine(t)
	first := containertest.Busybox(t, e)
	if second := containertest.Busybox(t, e); first != second || first == "" {
		t.Errorf("two images for one: %q, %q", first, second)
	}
}

func TestADaemonOfItsOwn(t *testing.T) {
	_, had := net.InterfaceByName("docker0")
	d, other := containertest.NewDaemon(t, containertest.DaemonOptions{}),
		containertest.NewDaemon(t, containertest.DaemonOptions{})
	e := d.Engine()
	answers := func(e *container.Engine) error { _, err := e.Info(t.Context()); return err }
	image := containertest.Busybox(t, e)
	for _, end := range []func(){d.Kill, d.Stop} {
		end()
		if answers(e) == nil {
			t.Error("an engine that is gone answers")
		}
		if err := answers(other.Engine()); err != nil {
			t.Errorf("the end of one was that of another: %v", err)
		}
		d.Start()
		if again := containertest.Busybox(t, e); again != image {
			t.Errorf("it came back with other images: %s, %s", image, again)
		}
	}
	if _, err := net.InterfaceByName("docker0"); err != nil && had == nil {
		t.Error("the network of this machine's engine was removed")
	}
}

func TestARegistryOfItsOwn(t *testing.T) {
	r := containertest.NewRegistry(t)
	get := func() error {
		answer, err := http.Get("http://" + r.Host + "/v2/")
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	if err := get(); err != nil {
		t.Error(err)
	}
	r.Stop()
	if get() == nil {
		t.Error("a registry that is gone answers")
	}
}
