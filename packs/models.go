package packs

import (
	"github.com/hashicorp/hcl/v2/hclsimple"
)

// Model is one model block: the published properties of a model.
type Model struct {
	Name         string  `hcl:"name,label"`
	Exists       *bool   `hcl:"exists,optional"`       // false: there is no model of this name; nil: there is
	Parameters   float64 `hcl:"parameters,optional"`   // all of them, those of experts included
	Weights      float64 `hcl:"weights,optional"`      // bytes of the files that are loaded; 0: two a parameter
	Quantization string  `hcl:"quantization,optional"` // of those files; empty: none
	Architecture string  `hcl:"architecture,optional"` // class name; several names of one are divided by |
	MaxLength    int     `hcl:"max_length,optional"`   // tokens
	// bytes of keys and values for one token at 16 bits; 0: not known
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
