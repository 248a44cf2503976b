package packs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/needtest"
	"github.com/benchgraph/benchgraph/metrics/classify"
)

// signature is a line that an engine prints after a failure, and the rule that must explain it.
type signature struct{ id, rule, class, stage, line string }

func signatures(t testing.TB) []signature {
	t.Helper()
	src, err := os.ReadFile("testdata/signatures.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []signature
	ids := map[string]bool{}
	for _, row := range strings.Split(strings.TrimSpace(string(src)), "\n")[1:] {
		f := strings.SplitN(row, "\t", 5)
		if len(f) != 5 {
			t.Fatalf("not five columns: %q", row)
		}
		all = append(all, signature{f[0], f[1], f[2], f[3], f[4]})
		ids[f[0]] = true
	}
	if len(ids) != 59 {
		t.Fatalf("%d signatures, want 59", len(ids))
	}
	return all
}

// explain classifies a log with all rules.
func explain(t testing.TB, all []classify.Rule, log string) classify.Match {
	t.Helper()
	m, _, err := classify.Log(all, "", strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Every signature has its rule, class and first stage, and keeps them after the prefixes of loggers and container
// runtimes, and between warnings and the wrappers that follow a root cause.
func TestSignatures(t *testing.T) {
	needtest.NoRace(t)
	all := rules(t)
	prefixes := []string{
		"", "> ", "[rank0]: ", "(EngineCore_DP0 pid=187) ", "(APIServer pid=1) ",
		"(RayWorkerWrapper pid=12, ip=10.0.0.7) ",
		"2025-11-02T10:11:12.123456789Z ", "vllm-server-1  | ", "ERROR 06-30 13:53:19 [core.py:515] ",
		"(EngineCore pid=187) ERROR 06-30 13:53:19 [core.py:515] ", "[2025-11-02 10:11:12 TP0] ", "\x1b[31m",
		"[pod/vllm-0/server] 2025-11-02 10:11:12,123 ",
	}
	const around = "WARNING 06-30 13:53:01 [_custom_ops.py:20] Failed to import from vllm._C with " +
		"ModuleNotFoundError(\"No module named 'vllm._C'\")\n" +
		"WARNING 06-30 13:53:02 [utils.py:9] Address already in use, trying the next one\n%s\n" +
		"WARNING:  connection refused, waiting\nRuntimeError: Engine core initialization failed. See root cause " +
		"above. Failed core proc(s): {}\n" +
		"Traceback (most recent call last):\n  File \"/x.py\", line 3, in <module>\nRuntimeError: it failed\n"
	for n, s := range signatures(t) {
		i := slices.IndexFunc(all, func(r classify.Rule) bool { return r.Name == s.rule })
		if i < 0 || string(all[i].Class) != s.class || len(all[i].Stages) > 0 && all[i].Stages[0] != s.stage {
			t.Errorf("%s: %s is %+v, want class %s and stage %s first", s.id, s.rule, all[max(i, 0)], s.class, s.stage)
			continue
		}
		for j, p := range prefixes {
			if j > 0 && (n+j)%4 > 0 {
				continue
			}
			if m := explain(t, all, "INFO before\n"+p+s.line+"\n"); m.Rule != s.rule || m.Line != 2 {
				t.Errorf("%s: %q is explained by %q: %q", s.id, p+s.line, m.Rule, m.Evidence)
			}
			if all[i].Wrapper || strings.Contains(s.line, "Warning: ") {
				continue // other wrappers may go before it
			}
			if m := explain(t, all, fmt.Sprintf(around, p+s.line)); m.Rule != s.rule || m.Line != 3 {
				t.Errorf("%s: among warnings and wrappers, %q is explained by %q: %q", s.id, p+s.line, m.Rule,
					m.Evidence)
			}
		}
	}
}

// A terminal or a log formatter breaks a line at its width, at a space or within a word, and repeats its prefix.
func TestBrokenLines(t *testing.T) {
	needtest.NoRace(t)
	all := rules(t)
	// Rules whose expression asks for short words, or for a whole line, are not looked for over two lines.
	short := []string{"disk_full", "host_out_of_memory", "unknown_option", "address_in_use", "connection_refused",
		"nccl"}
	broken := 0
	for _, s := range signatures(t) {
		if slices.Contains(short, s.rule) || strings.HasPrefix(s.line, "WARNING") {
			continue
		}
		i := slices.IndexFunc(all, func(r classify.Rule) bool { return r.Name == s.rule })
		at := all[i].Pattern.FindStringIndex(s.line)
		for cut := max(at[0]+4, 44); cut < at[1]-3; cut += 5 {
			for _, prefix := range []string{"", "(EngineCore pid=187) ERROR 06-30 13:53:19 [core.py:515] ",
				"2025-11-02T10:11:12Z "} {
				log := prefix + s.line[:cut] + "\n" + prefix + strings.TrimPrefix(s.line[cut:], " ") + "\n"
				m := explain(t, all, log)
				if m.Rule != s.rule {
					t.Fatalf("%s: %q is explained by %q", s.id, log, m.Rule)
				}
				if m.Line != 1 {
					t.Errorf("%s: %q: line %d", s.id, log, m.Line)
				}
				broken++
			}
		}
	}
	if broken < 300 {
		t.Errorf("only %d lines were broken", broken)
	}
}

// Outputs of benchmarks, and of servers that started, have no failure, whatever they warn of.
func TestHealthyOutputs(t *testing.T) {
	all := rules(t)
	files, err := filepath.Glob("testdata/healthy/*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := explain(t, all, string(src)); m.Line > 0 {
			t.Errorf("%s:%d: %s: %s", name, m.Line, m.Rule, m.Evidence)
		}
	}
}
