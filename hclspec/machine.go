package hclspec

import (
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

// The command line chooses the machine of a plan, so no attribute is part of a key.
func machineSchema() *eval.Schema {
	return &eval.Schema{Kind: "machine", Label: true, Free: []string{"devices"}}
}

func decodeMachine(r reader, b Block) {
	r.Need("devices", "the file with the output of benchgraph devices -json on that machine")
	m := Machine{Block: b, Devices: r.Str("devices"), DevicesRange: r.At("devices")}
	if m.Devices == "" {
		return
	}
	document, err := r.l.dir.Read(m.Devices)
	if err != nil {
		r.Fail(m.DevicesRange, "Machine not described",
			"%s. Name a file of the project with the output of \"benchgraph devices -json\" on that machine.",
			err)
		return
	}
	m.Document = document
	r.l.spec.Machines = append(r.l.spec.Machines, m)
}
