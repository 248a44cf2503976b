package dockertest

import (
	"net/http"
	"testing"

	"github.com/benchgraph/benchgraph/internal/docker"
)

// RemoveImage removes an image that a test brought, by the name under which it came, or by its ID.
func RemoveImage(t testing.TB, e *docker.Engine, ref string) {
	t.Helper()
	if err := dial(e.Host()).do(http.MethodDelete, "/images/"+ref+"?noprune=1", nil, nil); err != nil {
		t.Error(err)
	}
}
