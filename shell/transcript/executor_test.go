package transcript

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
)

// taker is an Executor that starts nothing, but reads that many bytes of a command's files; -1: all.
type taker struct {
	executor.Executor
	most int64
	took []byte
}

func (e *taker) Start(_ context.Context, cmd executor.Command) (executor.Process, error) {
	files := cmd.Container.Files
	if e.most >= 0 {
		files = io.LimitReader(files, e.most)
	}
	var err error
	e.took, err = io.ReadAll(files)
	return nil, errors.Join(err, errors.New("it starts nothing"))
}

// A tar reaches the container unchanged, and its files are noted: by an input's path, with their content, or by digest.
// An engine that reads only a part of the tar blocks nobody.
func TestFilesOfAContainerAreNoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var packed bytes.Buffer
		w := tar.NewWriter(&packed)
		var want []File
		env := &engine.Env{}
		input := engine.Input{Entry: cache.Entry{Dir: "/input"}}
		for i := range rapid.IntRange(0, 5).Draw(t, "files") {
			size := rapid.SampledFrom([]int{0, 1, 700, mostContent, mostContent + 1}).Draw(t, "size")
			content := bytes.Repeat([]byte{byte('a' + i)}, size)
			sum := fmt.Sprintf("%x", sha256.Sum256(content))
			f := File{Path: fmt.Sprintf("/dir/%d", i), Executable: rapid.Bool().Draw(t, "executable")}
			mode := int64(0o644)
			if f.Executable {
				mode = 0o755
			}
			switch {
			case size > 0 && rapid.Bool().Draw(t, "of the input"):
				input.Files = append(input.Files, cache.File{Path: fmt.Sprint(i), SHA256: sum})
				f.From = fmt.Sprintf("/input/%d", i)
			case size > mostContent:
				f.SHA256 = sum
			default:
				f.Content = content
			}
			want = append(want, f)
			if err := w.WriteHeader(&tar.Header{Name: f.Path[1:], Mode: mode, Size: int64(size)}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Clone(packed.Bytes())
		env.Inputs = []engine.Input{input}
		e := &taker{most: -1}
		if rapid.Bool().Draw(t, "a part") {
			e.most = int64(rapid.IntRange(0, len(whole)).Draw(t, "bytes"))
		}
		notes := Of(env)
		_, _ = notes.Executor(e).Start(t.Context(), executor.Command{Argv: []string{"true"},
			Container: &executor.Container{Image: "i", Files: &packed}})
		got := notes.Steps[0].Files
		if !bytes.HasPrefix(whole, e.took) || e.most < 0 && len(e.took) != len(whole) {
			t.Fatalf("%d of %d bytes reached the container", len(e.took), len(whole))
		}
		if e.most < 0 && len(got) != len(want) || len(got) > len(want) {
			t.Fatalf("%d of %d files are noted", len(got), len(want))
		}
		for i := range got {
			g, w := got[i], want[i]
			if g.Path != w.Path || g.From != w.From || g.SHA256 != w.SHA256 || g.Executable != w.Executable ||
				!bytes.Equal(g.Content, w.Content) {
				t.Fatalf("%+v, want %+v", g, w)
			}
		}
	})
}
