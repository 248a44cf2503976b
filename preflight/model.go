package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/preflight/program"
	"github.com/benchgraph/benchgraph/preflight/requirement"
)

// named returns the last model of a name, in upper or lower case; nil if there is none.
func (c *checker) named(name string) *requirement.Model {
	for _, m := range slices.Backward(c.in.Models()) {
		if strings.EqualFold(m.Name, name) {
			return &m
		}
	}
	return nil
}

var modelID = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[\w.-]+$`)

// model checks the first model that the programs load: a server, or commands without a server.
func (c *checker) model(b *Benchmark, all []program.Program) {
	for i := range all {
		p := &all[i]
		if p.Side == program.Client || p.Side == program.Offline && !p.Loads() {
			continue
		}
		w, ok := p.ModelName()
		if !ok || w.Partial || w.Text == "" {
			continue
		}
		c.place = cmp.Or(p.Place, b.Place)
		c.loads(b, p, w.Text)
		return
	}
}

func (c *checker) loads(b *Benchmark, p *program.Program, name string) {
	if strings.Contains(name, sh.Ref) || path.IsAbs(name) || strings.HasPrefix(name, sh.WorkDir) ||
		strings.HasPrefix(name, ".") {
		return // paths checks it
	}
	if _, laid := b.Data[name]; laid {
		return
	}
	m := c.named(name)
	switch {
	case m == nil && modelID.MatchString(name):
		remedy := "describe it in a model block, so that its size can be checked"
		if near := c.nearModel(name); near != "" {
			remedy = "did you mean " + near + "? Else describe it in a model block"
		}
		c.add(Model, Unverified, name+" is not in the table of models", remedy)
		c.asked(b, p)
		return
	case m == nil:
		return
	case m.Missing:
		remedy := "name a model that exists"
		if near := c.nearModel(name); near != "" {
			remedy += ", such as " + near
		}
		c.add(Model, Fail, "there is no model "+m.Name, remedy)
		return
	}
	c.add(Model, OK, m.Name, "")
	c.gated(b, m)
	if c.asked(b, p) {
		c.memory(b, p, m)
	}
	c.architecture(b, p, m)
}

func (c *checker) nearModel(name string) string {
	best, like := "", 0.85
	for _, m := range c.in.Models() {
		if l := levenshtein.Match(strings.ToLower(name), strings.ToLower(m.Name), nil); !m.Missing && l > like {
			best, like = m.Name, l
		}
	}
	return best
}

// gated checks whether the commands can get weights that need a token.
func (c *checker) gated(b *Benchmark, m *requirement.Model) {
	if !m.Gated {
		return
	}
	offline := func(env map[string]string) bool {
		return env["HF_HUB_OFFLINE"] == "1" || env["TRANSFORMERS_OFFLINE"] == "1"
	}
	token := slices.ContainsFunc(b.Secrets, func(s string) bool {
		return strings.Contains(s, "HF_TOKEN") || strings.Contains(s, "HUGGING_FACE")
	})
	for _, env := range []map[string]string{b.Env, b.ServerEnv} {
		token = token || env["HF_TOKEN"] != "" || env["HF_HOME"] != ""
	}
	switch {
	case token, len(b.Mounts) > 0:
		c.add(Gated, OK, m.Name+" is gated, and a token or a mount is declared", "")
	case offline(b.Env) || offline(b.ServerEnv):
		c.add(Gated, Warn, m.Name+" is gated and the commands are offline: the weights must be in the image",
			"declare a mount with the weights")
	default:
		c.add(Gated, Warn, m.Name+" is gated, and the commands get no token", `secrets = ["HF_TOKEN"]`)
	}
}

// asked checks whether a program uses no more devices than its benchmark asks for, and reports whether that is so.
func (c *checker) asked(b *Benchmark, p *program.Program) bool {
	if have := len(requirement.Serving(c.in.Devices[b.Machine], b.Model,
		b.Memory)); len(c.in.Devices[b.Machine]) > 0 && have < b.GPUs {
		c.add(Memory, Warn, fmt.Sprintf("gpus.count is %d, and the machine has %d such devices", b.GPUs, have),
			"plan for a machine that has them: -machine=FILE")
	}
	n := p.Ranks()
	if b.GPUs == 0 || n <= b.GPUs || p.Has("--nnodes", "--nodes") {
		return true
	}
	c.add(Memory, Fail, fmt.Sprintf("%s spreads the model over %d devices, and gpus.count is %d", p.Title(), n, b.GPUs),
		fmt.Sprintf("gpus { count = %d }", n))
	return false
}

// devices returns the devices of all machines.
func (c *checker) devices() []requirement.Device {
	return slices.Concat(slices.Collect(maps.Values(c.in.Devices))...)
}

// memory checks whether the weights fit the devices over which they are spread.
func (c *checker) memory(b *Benchmark, p *program.Program, m *requirement.Model) {
	need, reason := m.LoadedBy(p)
	each, most, device := requirement.DeviceMemory(c.in.Devices[b.Machine], b.Model, b.Memory)
	if need == 0 || b.GPUs == 0 {
		return
	}
	size := fmt.Sprintf("%s: %.0f GB of weights (%s)", m.Name, need/gb, reason)
	if each == 0 {
		c.add(Memory, Unverified, size+", and no device is known on which it is to run",
			"plan with -machine, or say gpus { model }")
		return
	}
	use := p.Number("--gpu-memory-utilization", "--mem-fraction-static")
	if use == 0 || use > 1 {
		use = p.Usual()
	}
	n := float64(p.Ranks())
	offload := n * p.Number("--cpu-offload-gb") * (1 << 30)
	room := n*each*use + offload
	has := fmt.Sprintf("%d × %s with %.0f GiB at %.0f %% have room for %.0f GB", int(n), device, each/(1<<30), 100*use,
		room/gb)
	remedy := fmt.Sprintf("spread it over %d devices or more, or take a smaller model", int(need/(each*use))+1)
	if need > 1.01*(n*most*use+offload) { // the numbers of the table are rounded
		c.add(Memory, Fail, size+"; "+has, remedy)
		return
	}
	length := p.Number("--max-model-len", "--context-length")
	if length < 1 {
		length = float64(m.MaxLen)
	}
	kv := m.TokenBytes * length
	if t, _ := p.Value("--kv-cache-dtype"); strings.Contains(t.Text, "fp8") {
		kv /= 2
	}
	if need+kv > room {
		shorten := "lower --max-model-len"
		if p.IsSGLang() {
			shorten = "lower --context-length"
		}
		c.add(Memory, Warn, fmt.Sprintf("%s and %.0f GB of cache for one sequence of %.0f tokens; %s", size, kv/gb,
			length, has),
			fmt.Sprintf("%s, spread it over %d devices or more, or take a smaller model", shorten,
				int((need+kv)/(each*use))+1))
		return
	}
	c.add(Memory, OK, size+"; "+has, "")
}

const gb = 1e9

// disk compares the size of all models' weights with the free space on the disk.
func (c *checker) disk() {
	c.commit, c.candidate, c.place = "", "", ""
	names := map[string]bool{}
	total := 0.0
	for _, f := range c.found {
		if f.Check == Model && f.Status == OK && !names[f.Evidence] {
			names[f.Evidence] = true
			total += c.named(f.Evidence).Bytes
		}
	}
	if total > 0 && c.in.FreeDisk > 0 {
		says := fmt.Sprintf("weights (models: %d) take %.0f GB, %.0f GB are free where results are kept", len(names),
			total/1e9, float64(c.in.FreeDisk)/1e9)
		if total > float64(c.in.FreeDisk) {
			c.add(Disk, Warn, says, "mount a disk that holds them, or measure in parts: -target")
		} else {
			c.add(Disk, OK, says, "")
		}
	}
}
