package executor_test

import (
	"io"
	"testing"

	"github.com/benchgraph/benchgraph/executor"
)

func BenchmarkHostRun(b *testing.B) {
	h := executor.NewHost(executor.HostOptions{})
	for b.Loop() {
		if s, err := executor.Run(b.Context(), h, executor.Command{Argv: []string{"/bin/true"}, Dir: "/"}); err != nil || !s.OK() {
			b.Fatal(s, err)
		}
	}
}

func BenchmarkMasker(b *testing.B) {
	text := make([]byte, 32<<10)
	for i := range text {
		text[i] = byte('a' + i%26)
	}
	m := executor.NewMasker(io.Discard, []string{"hf_0123456789abcdef0123456789abcdef", "a-very-secret-one", "zabc"})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := m.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}
