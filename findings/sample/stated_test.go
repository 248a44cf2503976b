package sample

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/hclspec"
)

// Paths of a single lifecycle are no settings in which two lifecycles may differ.
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

// The characters of the answers count in every file; other counts of a result file do not.
func TestTheTextOfAnswersIsCounted(t *testing.T) {
	dir := raw(t, "Total generated tokens: 40\n", "")
	text := `{"completed": 2, "num_prompts": 2, "total_output_tokens": 48, "generated_texts": ["été ", "", "a b", " "]}`
	if err := os.WriteFile(filepath.Join(dir, OutDir, "result.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := statement(hclspec.Metrics{}, dir)
	if err != nil || got.Counts[Characters] != 6 || got.Counts[EmptyAnswers] != 2 ||
		got.Counts["total_output_tokens"] != 40 || len(got.Counts) != 3 {
		t.Errorf("%v, %v", got.Counts, err)
	}
}
