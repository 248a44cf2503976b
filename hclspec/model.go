package hclspec

import (
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

// Facts about a model are used by preflights only. They change nothing that is made or measured.
func modelSchema() *eval.Schema {
	return &eval.Schema{Kind: "model", Label: true, Free: []string{
		"exists", "parameters", "weights", "quantization", "architecture", "max_length", "cache", "gated", "rope",
	}}
}

func decodeModel(r reader, b Block) {
	m := Model{
		Block: b, Missing: r.Has("exists") && !r.Bool("exists"), Parameters: r.Number("parameters"),
		Weights:      r.Number("weights"),
		Quantization: r.Str("quantization"), Architecture: r.Str("architecture"),
		MaxLength: int(r.Whole("max_length", 0, 0)),
		Cache:     r.Number("cache"), Gated: r.Bool("gated"), Rope: r.Str("rope"),
	}
	if org, name, ok := strings.Cut(b.Address.Name, "/"); !ok || org == "" || name == "" ||
		strings.Contains(name, "/") {
		r.Fail(b.Range, "Invalid name", "A model is named as it is published: model \"org/name\".")
	}
	for _, name := range []string{"parameters", "weights", "cache"} {
		if r.Has(name) && r.Number(name) < 0 {
			r.Fail(r.At(name), "Invalid number", "%s cannot be negative.", name)
		}
	}
	if !m.Missing && m.Parameters == 0 && m.Weights == 0 {
		r.Fail(b.Range, "Model without a size",
			"Say how many parameters it has, or the bytes of its weights; or exists = false.")
	}
	r.l.spec.Models = append(r.l.spec.Models, m)
}
