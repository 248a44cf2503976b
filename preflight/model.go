package preflight

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/benchgraph/benchgraph/internal/sh"
)

// ModelSpec is what is known of a model as its author publishes it.
type ModelSpec struct {
	Name         string // org/name
	Missing      bool   // there is no model of this name
	Parameters   float64
	Bytes        float64 // of the weights as published
	Architecture string
	Gated        bool
	MaxLen       int
	TokenBytes   float64 // of the key-value cache for one token, at 16 bits; 0: not known
	Rope         string  // kind of position scaling that an engine must know; empty: none
	Weights      string  // kind: "fp8", "int4"; empty: 16 bits
}

// named is the last model of a name, in any case; nil: it is not known.
func (c *checker) named(name string) *ModelSpec {
	for _, m := range slices.Backward(c.in.Models()) {
		if strings.EqualFold(m.Name, name) {
			return &m
		}
	}
	return nil
}

var modelID = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[\w.-]+$`)

// model checks the models that the server, or the commands without one, load: the first one of each.
func (c *checker) model(b *Benchmark, all []program) {
	fill := slices.IndexFunc(all, func(p program) bool { return p.fill }) // those of the fill come last
	if fill < 0 {
		fill = len(all)
	}
	c.firstModel(b, all[:fill])
	c.firstModel(b, all[fill:])
}

func (c *checker) firstModel(b *Benchmark, all []program) {
	for i := range all {
		p := &all[i]
		if p.side == client || p.side == offline && !p.loads() {
			continue
		}
		w, ok := p.modelName()
		if !ok || w.Partial || w.Text == "" {
			continue
		}
		c.at(b, p)
		c.loads(b, p, w.Text)
		return
	}
}

// loads reports whether a program without a server loads a model: a benchmark of an engine's own.
func (p *program) loads() bool {
	if p.name == "vllm" {
		return len(p.sub) == 2 && p.sub[1] != "serve" || len(p.sub) == 1 && p.sub[0] == "serve"
	}
	return p.python && (p.script != "" || p.module != "")
}

// modelName is the model that a program is given.
func (p *program) modelName() (sh.Word, bool) {
	if w, ok := p.value("--model", "--model-path", "-m"); ok {
		return w, true
	}
	if p.name == "vllm" && len(p.sub) == 1 && p.sub[0] == "serve" {
		for i, w := range p.args {
			if isFlag(w) {
				continue
			}
			if i == 0 || !isFlag(p.args[i-1]) || strings.Contains(p.args[i-1].Text, "=") {
				return w, true
			}
		}
	}
	return sh.Word{}, false
}

func (c *checker) loads(b *Benchmark, p *program, name string) {
	if strings.Contains(name, sh.Ref) || path.IsAbs(name) || strings.HasPrefix(name, sh.WorkDir) ||
		strings.HasPrefix(name, ".") {
		return // a path, which is checked as one
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
	c.gated(b, p, m)
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

// gated checks that weights that need a token can be had.
func (c *checker) gated(b *Benchmark, p *program, m *ModelSpec) {
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

// number is the value of an option; 0 where there is none, or it is not known.
func (p *program) number(names ...string) float64 {
	w, ok := p.value(names...)
	if !ok || w.Partial {
		return 0
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(w.Text), 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// ranks is over how many devices the weights are spread.
func (p *program) ranks() int {
	tp := max(p.number("--tensor-parallel-size", "-tp", "--tp", "--tp-size"), 1)
	pp := max(p.number("--pipeline-parallel-size", "-pp", "--pp", "--pp-size"), 1)
	return int(min(tp*pp, 1<<20))
}

// asked checks that a program asks for no more devices than its benchmark. It returns whether the count is right.
func (c *checker) asked(b *Benchmark, p *program) bool {
	if have := c.serving(b); len(c.in.Devices[b.Machine]) > 0 && have < b.GPUs {
		c.add(Memory, Warn, fmt.Sprintf("gpus.count is %d, and the machine has %d such devices", b.GPUs, have),
			"plan for a machine that has them: -machine=FILE")
	}
	n := p.ranks()
	if b.GPUs == 0 || n <= b.GPUs || p.has("--nnodes", "--nodes") {
		return true
	}
	c.add(Memory, Fail, fmt.Sprintf("%s spreads the model over %d devices, and gpus.count is %d", p.title(), n, b.GPUs),
		fmt.Sprintf("gpus { count = %d }", n))
	return false
}

// devices are those of all machines.
func (c *checker) devices() []Device {
	return slices.Concat(slices.Collect(maps.Values(c.in.Devices))...)
}

// serving counts the devices of the machine that a benchmark may have.
func (c *checker) serving(b *Benchmark) int {
	like, err := regexp.Compile(b.Model)
	if err != nil {
		return len(c.in.Devices[b.Machine])
	}
	n := 0
	for _, d := range c.in.Devices[b.Machine] {
		if like.MatchString(d.Name) && float64(d.Memory) >= 0.92*float64(b.Memory) {
			n++
		}
	}
	return n
}

// published are the sizes of devices as they are sold, in GiB: the usual one, and the largest one of the name.
var published = []struct {
	name        string
	usual, most float64
}{
	{"GB300", 288, 288}, {"B300", 288, 288}, {"GB200", 192, 192}, {"B200", 180, 192}, {"B100", 192, 192},
	{"GH200", 96, 144}, {"H200", 141, 144},
	{"H100", 80, 94}, {"H800", 80, 80}, {"H20", 96, 141}, {"A100", 80, 80}, {"A800", 80, 80}, {"A40", 48, 48},
	{"A6000", 48, 48},
	{"RTX PRO 6000", 96, 96}, {"RTX 6000", 48, 96}, {"L40", 48, 48}, {"L20", 48, 48}, {"L4", 24, 24}, {"A30", 24, 24},
	{"A10", 24, 24}, {"V100", 32, 32},
	{"T4", 16, 16}, {"RTX 5090", 32, 32}, {"RTX 4090", 24, 48}, {"RTX 3090", 24, 24},
}

// deviceMemory returns the usual and the greatest memory of one device of a benchmark, in bytes, and the name of the
// device; 0: unknown.
func (c *checker) deviceMemory(b *Benchmark) (usual, most float64, name string) {
	like, err := regexp.Compile(b.Model)
	if err != nil {
		return 0, 0, ""
	}
	for _, d := range c.in.Devices[b.Machine] {
		if like.MatchString(d.Name) && float64(d.Memory) > most && float64(d.Memory) >= 0.92*float64(b.Memory) {
			most, name = float64(d.Memory), d.Name
		}
	}
	if most > 0 || b.Model == "" || len(c.in.Devices[b.Machine]) > 0 {
		return most, most, name
	}
	for _, d := range published {
		if like.MatchString("NVIDIA " + d.name) {
			most = max(most, d.most*(1<<30))
			if d.usual*(1<<30) > usual {
				usual, name = d.usual*(1<<30), d.name
			}
		}
	}
	if float64(b.Memory) >= 0.9*usual {
		most = usual // the file describes the usual one
	}
	return usual, most, name
}

// weights are the bytes of a model as a program loads it, and how they came about.
func (p *program) weights(m *ModelSpec) (float64, string) {
	quantization, _ := p.value("--quantization", "-q")
	dtype, _ := p.value("--dtype")
	switch q := strings.ToLower(quantization.Text); {
	case quantization.Partial:
		return 0, ""
	case m.Weights != "":
		return m.Bytes, m.Weights
	case strings.Contains(q, "bitsandbytes") || strings.Contains(q, "int4") || strings.Contains(q, "awq") ||
		strings.Contains(q, "gptq") || strings.Contains(q, "fp4") || strings.Contains(q, "gguf"):
		return 0.5 * m.Parameters, q
	case q != "" && q != "none":
		return m.Parameters, q
	}
	if d := strings.ToLower(dtype.Text); d == "float32" || d == "float" {
		return 4 * m.Parameters, d
	}
	return m.Bytes, "16 bits"
}

// memory checks that weights fit the devices that they are spread over.
func (c *checker) memory(b *Benchmark, p *program, m *ModelSpec) {
	need, as := p.weights(m)
	each, most, device := c.deviceMemory(b)
	if need == 0 || b.GPUs == 0 {
		return
	}
	size := fmt.Sprintf("%s: %.0f GB of weights (%s)", m.Name, need/gb, as)
	if each == 0 {
		c.add(Memory, Unverified, size+", and no device is known on which it is to run",
			"plan with -machine, or say gpus { model }")
		return
	}
	use := p.number("--gpu-memory-utilization", "--mem-fraction-static")
	if use == 0 || use > 1 {
		use = p.usual()
	}
	n := float64(p.ranks())
	offload := n * p.number("--cpu-offload-gb") * (1 << 30)
	room := n*each*use + offload
	has := fmt.Sprintf("%d × %s with %.0f GiB at %.0f %% have room for %.0f GB", int(n), device, each/(1<<30), 100*use,
		room/gb)
	remedy := fmt.Sprintf("spread it over %d devices or more, or take a smaller model", int(need/(each*use))+1)
	if need > 1.01*(n*most*use+offload) { // the table rounds
		c.add(Memory, Fail, size+"; "+has, remedy)
		return
	}
	length := p.number("--max-model-len", "--context-length")
	if length < 1 {
		length = float64(m.MaxLen)
	}
	kv := m.TokenBytes * length
	if t, _ := p.value("--kv-cache-dtype"); strings.Contains(t.Text, "fp8") {
		kv /= 2
	}
	if need+kv > room {
		shorten := "lower --max-model-len"
		if p.isSGLang() {
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

// usual is the part of a device that an engine takes when nothing is said: what is known of vLLM, and nearly all for
// others.
func (p *program) usual() float64 {
	if p.name == "vllm" || strings.HasPrefix(p.module, "vllm.") ||
		strings.HasPrefix(path.Base(p.script), "benchmark_") {
		return 0.9
	}
	return 0.97
}

// isSGLang reports whether a program is a part of SGLang.
func (p *program) isSGLang() bool { return strings.HasPrefix(p.module, "sglang.") }

// disk compares the weights of all models with the room on the disk.
func (c *checker) disk() {
	c.commit, c.of, c.place = "", "", ""
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
