package packs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/packs"
)

// The recipes that edit files of a package do so, and leave the expected text.
func TestRecipes(t *testing.T) {
	dir := t.TempDir()
	src := "benchgraph { packs = [\"vllm\", \"sglang\"] }\nlocals { vllm_gpu_memory = [\"c\"] }\ncommit \"c\" " +
		"{}\nvariant \"baseline\" { baseline = true }\n"
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.hcl"), []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	spec, _, diags := hclspec.Load(hclspec.Options{Dir: dir, Packs: packs.FS})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	fixes := map[string]hclspec.FixCase{}
	for _, f := range spec.Fixes {
		fixes[f.Address.Name] = f.Cases["c/baseline"]
	}
	if !fixes["gpu_memory"].When || fixes["aimv2"].When {
		t.Errorf("gpu_memory is due: %v, aimv2: %v", fixes["gpu_memory"].When, fixes["aimv2"].When)
	}
	const airports = "from . import airports, countries\nfrom .airports import IATA\nfrom .email import Email\n"
	const ovis = "vllm/transformers_utils/configs/ovis"
	for _, c := range []struct {
		fix  string
		have map[string]string
		want map[string]string // of the files that change
	}{
		{"aimv2", map[string]string{
			ovis + ".py":  "AutoConfig.register(\"aimv2\", AIMv2Config)\nAutoConfig.register(\"ovis\", OvisConfig)\n",
			ovis + "2.py": "nothing\n",
		}, map[string]string{ovis +
			".py": "AutoConfig.register(\"aimv2\", AIMv2Config, exist_ok=True)\nAutoConfig.register(\"ovis\", " +
			"OvisConfig)\n"}},
		{"outlines_airports", map[string]string{"outlines/types/__init__.py": airports},
			map[string]string{"outlines/types/__init__.py": "from . import countries\nfrom .email import Email\n"}},
		{"sglang_airports", map[string]string{"outlines/types/__init__.py": airports},
			map[string]string{"outlines/types/__init__.py": "from . import countries\nfrom .email import Email\n"}},
		{"gpu_memory",
			map[string]string{"vllm/config.py": "class A:\n    gpu_memory_utilization: float = 0.9\n    swap: float " +
				"= 0.9\n"},
			map[string]string{"vllm/config.py": "class A:\n    gpu_memory_utilization: float = 0.95\n    swap: " +
				"float = 0.9\n"}},
		{"gpu_memory", map[string]string{"vllm/engine/arg_utils.py": "    gpu_memory_utilization: float = 0.90\n",
			"vllm/config.py": "gpu_memory_utilization: float\n"},
			map[string]string{"vllm/engine/arg_utils.py": "    gpu_memory_utilization: float = 0.95\n"}},
	} {
		site := t.TempDir()
		for name, text := range c.have {
			path := filepath.Join(site, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, run := range fixes[c.fix].Run {
			cmd := exec.Command("sh", "-euc", run.Expand(hclspec.Address.String))
			cmd.Env = append(os.Environ(), "SITE="+site)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", c.fix, err, out)
			}
		}
		for name, text := range c.have {
			got, err := os.ReadFile(filepath.Join(site, name))
			if want, changes := c.want[name]; changes {
				text = want
			}
			if err != nil || string(got) != text {
				t.Errorf("%s: %s is %q, %v; want %q", c.fix, name, got, err, text)
			}
		}
	}
	if f := fixes["fa_utils"]; len(f.Files) != 1 || !strings.Contains(f.Files[0].To.Expand(hclspec.Address.String),
		"$SITE") {
		t.Errorf("fa_utils: %+v", f)
	}
}
