package sample

import (
	"testing"

	"github.com/benchgraph/benchgraph/findings/methodology"
)

// A path that only one lifecycle has is none of the settings that two of them may differ in.
func TestPathsOfOneLifecycleAreNamed(t *testing.T) {
	recorded := Member{Places: []methodology.Field{{Name: "$SRC", Value: "/tmp/1/base"},
		{Name: "task.weights", Value: "/store/abc/files"}}}
	for _, tt := range []struct {
		m           Member
		value, want string
	}{
		{recorded, "/tmp/1/base/model", "$SRC/model"},
		{recorded, "/tmp/1/baseline/model", "/tmp/1/baseline/model"},
		{recorded, "/store/abc/files", "task.weights"},
		{recorded, "/models/a; org/b", "/models/a; org/b"},
		{recorded, "/models/a; /tmp/1/base/b", "/models/a; $SRC/b"},
		{Member{}, "/tmp/2/base/model", "model"}, // an earlier version recorded no paths
	} {
		if got := tt.m.named(map[string]string{"model_id": tt.value})["model_id"]; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.value, got, tt.want)
		}
	}
}
