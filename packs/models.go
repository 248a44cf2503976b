package packs

import (
	"github.com/hashicorp/hcl/v2/hclsimple"
)

// Model is one model block: the published properties of a model.
type Model struct {
	Name         string  `hcl:"name,label"`
	Exists       *bool   `hcl:"exists,optional"`       // false: no model has this name; nil: true
	Parameters   float64 `hcl:"parameters,optional"`   // number of all parameters, with those of experts
	Weights      float64 `hcl:"weights,optional"`      // bytes of the files that are loaded; 0: two for each parameter
	Quantization string  `hcl:"quantization,optional"` // kind of quantization in these files; empty: none
	Architecture string  `hcl:"architecture,optional"` // class name; alternatives are separated by |
	MaxLength    int     `hcl:"max_length,optional"`   // tokens
	// bytes of keys and values for a token, at 16 bits; 0: not known
	Cache float64 `hcl:"cache,optional"`
	Gated bool    `hcl:"gated,optional"`
	Rope  string  `hcl:"rope,optional"` // scaling of positions that an engine must know; empty: none
}

// Models returns the built-in table of models. An error is a mistake in the pack.
func Models() ([]Model, error) {
	const name = "models.hcl"
	src, err := FS.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f struct {
		Models []Model `hcl:"model,block"`
	}
	err = hclsimple.Decode(name, src, nil, &f)
	return f.Models, err
}
