package tasks

import (
	"testing"

	"github.com/benchgraph/benchgraph/source/download"
)

func TestAnAddressIsShownWithoutItsPassword(t *testing.T) {
	for address, want := range map[string]string{
		"https://me:s3cr3t@example.org/a b.whl": "https://me:xxxxx@example.org/a%20b.whl", "/a/file": "/a/file",
		"%zz": "%zz",
	} {
		if got := download.WithoutPassword(address); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for address, want := range map[string]string{
		"https://x/a/$(touch%20x);'%22.whl":      "__touch_x____.whl",
		"https://x/vllm-0.8.2+cu12-cp38.whl?q=1": "vllm-0.8.2+cu12-cp38.whl", "https://x/..": "download",
	} {
		if got := download.FileName(address); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
