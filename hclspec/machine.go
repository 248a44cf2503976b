package hclspec

import (
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

// Which machine is planned for is said on the command line, so that nothing here is part of a key.
func machineSchema() *eval.Schema {
	return &eval.Schema{Kind: "machine", Label: true, Free: []string{"devices"}}
}

func decodeMachine(r reader, b Block) {
	r.Need("devices", "the file with what benchgraph devices -json printed on that machine")
	m := Machine{Block: b, Devices: r.Str("devices"), DevicesRange: r.At("devices")}
	if m.Devices == "" {
		return
	}
	document, err := r.l.dir.Read(m.Devices)
	if err != nil {
		r.Fail(m.DevicesRange, "Machine not described",
			"%s. It is to be a file of the project with what \"benchgraph devices -json\" printed on that machine.",
			err)
		return
	}
	m.Document = document
	r.l.spec.Machines = append(r.l.spec.Machines, m)
}
