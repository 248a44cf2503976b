package requirement

import (
	"strings"

	"github.com/benchgraph/benchgraph/preflight/program"
)

// Model has the published properties of a model.
type Model struct {
	Name         string // org/name
	Missing      bool   // no model has this name
	Parameters   float64
	Bytes        float64 // of the published weights
	Architecture string
	Gated        bool
	MaxLen       int
	TokenBytes   float64 // bytes of the key-value cache for a token, at 16 bits; 0: not known
	Rope         string  // kind of position scaling that an engine must know; empty: none
	Weights      string  // kind of quantization: "fp8", "int4"; empty: 16 bits
}

// LoadedBy returns the size of a model's weights as a program loads them, in bytes, and the reason for that size.
func (m *Model) LoadedBy(p *program.Program) (float64, string) {
	quantization, _ := p.Value("--quantization", "-q")
	dtype, _ := p.Value("--dtype")
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
