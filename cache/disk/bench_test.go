package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
)

// benchmarkLines are the lines of a typical benchmark's description: some forty.
func benchmarkLines(i int) [][]string {
	lines := [][]string{
		{"command",
			fmt.Sprintf("python3 benchmarks/benchmark_serving.py --model meta-llama/Llama-3.1-8B-Instruct "+
				"--num-prompts %d --port $PORT", i)},
		{"server",
			"python3 -m vllm.entrypoints.openai.api_server --model meta-llama/Llama-3.1-8B-Instruct --port $PORT"},
		{"client", "22d33bac0f8d5e4a5ae1b2c3d4e5f60718293a4b", "benchmarks"},
		{"ready", "http", "/health"},
		{"gpus", "1", "80GiB", "H100|H200"},
		{"metric", "items", "work done: ([0-9.]+) items/s", "items/s", "higher"},
		{"design", "7", "15", "blocked", "1"},
	}
	for e := range 24 {
		lines = append(lines, []string{"env", fmt.Sprintf("VLLM_VARIABLE_%d", e),
			fmt.Sprintf("value \"%d\" of the setting", e*i)})
	}
	for input := range 8 {
		lines = append(lines, []string{"input", "wheel", fmt.Sprintf("%064x", input*i)})
	}
	return lines
}

func describeBenchmark(lines [][]string) *cache.Description {
	d := cache.Describe("benchmark")
	for _, line := range lines {
		d.Add(line[0], line[1:]...)
	}
	return d
}

func BenchmarkKey(b *testing.B) {
	lines := benchmarkLines(1)
	b.ReportAllocs()
	for b.Loop() {
		if describeBenchmark(lines).Key().IsZero() {
			b.Fatal("no key")
		}
	}
}

// fillStore makes count entries without syncing them, unlike Put: a benchmark of reading needs no durable entries.
func fillStore(tb testing.TB, d *Disk, count int) []cache.Key {
	tb.Helper()
	keys := make([]cache.Key, count)
	for i := range keys {
		description := describeBenchmark(benchmarkLines(i))
		content := fmt.Appendf(nil, "result %d\n", i)
		files := []cache.File{
			{Path: "result.json", Mode: cache.ModePlain, Size: int64(len(content)), SHA256: fmt.Sprintf("%064x", i)},
			{Path: "server.log", Mode: cache.ModePlain, Size: int64(len(content)), SHA256: fmt.Sprintf("%064x", i)},
		}
		meta := cache.Meta{Key: description.Key(), Text: description.Text(), Files: files, Digest: cache.Digest(files),
			Bytes:   files[0].Size * 2,
			Address: fmt.Sprintf(`benchmark.serving["%d/human"]`, i), Created: time.Now(), Duration: time.Minute,
			Log: fmt.Sprint("attempt-", i)}
		text, err := cache.EncodeMeta(meta)
		if err != nil {
			tb.Fatal(err)
		}
		dir := d.entryDir(meta.Key)
		if err := os.MkdirAll(filepath.Join(dir, cache.FilesDir), 0o755); err != nil {
			tb.Fatal(err)
		}
		for name, bytes := range map[string][]byte{"meta": text, "out/result.json": content,
			"out/server.log": content} {
			if err := os.WriteFile(filepath.Join(dir, name), bytes, 0o644); err != nil {
				tb.Fatal(err)
			}
		}
		keys[i] = meta.Key
	}
	return keys
}

// BenchmarkGet10k makes the look-ups of a plan of ten thousand nodes.
func BenchmarkGet10k(b *testing.B) {
	dir := b.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	keys := fillStore(b, d, 10_000)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		for _, key := range keys {
			if _, err := d.Get(ctx, key, false); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkCollect removes 10,000 entries, through GC and, in the same run, with rm -rf.
func BenchmarkCollect(b *testing.B) {
	ways := []struct {
		name   string
		remove func(d *Disk) error
	}{
		{"gc", func(d *Disk) error {
			_, err := d.GC(context.Background(), cache.GCOptions{Keep: func(cache.Key) bool { return false }})
			return err
		}},
		{"rm", func(d *Disk) error { return exec.Command("rm", "-rf", d.path("entries")).Run() }},
	}
	for _, way := range ways {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				d, err := Open(filepath.Join(b.TempDir(), "store"))
				if err != nil {
					b.Fatal(err)
				}
				fillStore(b, d, 10_000)
				unix.Sync()
				b.StartTimer()
				if err := errors.Join(way.remove(d), d.Close()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
