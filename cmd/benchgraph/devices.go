package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/device"
)

func (a *app) devices() cli.Command {
	asJSON := false
	return cli.Command{
		Name: "devices", Summary: "the GPUs of this machine",
		Flags: func(fs *flag.FlagSet) { fs.BoolVar(&asJSON, "json", false, "write JSON to stdout") },
		Run:   func(ctx context.Context, _ []string) error { return a.runDevices(ctx, asJSON) },
	}
}

func (a *app) runDevices(ctx context.Context, asJSON bool) error {
	devices, provider, reason := device.Detect(ctx)
	if asJSON {
		type deviceDoc struct {
			device.Device
			Processes []any `json:"processes"`
			Lease     any   `json:"lease"`
		}
		list := []deviceDoc{}
		for _, d := range devices {
			list = append(list, deviceDoc{Device: d, Processes: []any{}})
		}
		doc := map[string]any{"format": view.Format, "provider": provider, "devices": list}
		if reason != "" {
			doc["reason"] = reason
		}
		return view.JSON(a.stdout, doc)
	}
	if len(devices) == 0 {
		_, err := fmt.Fprintf(a.stdout, "No GPU: %s.\n", view.Clean(reason))
		return err
	}
	rows := [][]string{{"index", "name", "memory", "used", "uuid"}}
	for _, d := range devices {
		rows = append(rows, []string{fmt.Sprint(d.Index), view.Clean(d.Name), view.Bytes(d.Memory), view.Bytes(d.Used), view.Clean(d.UUID)})
	}
	view.Table(a.stdout, "", rows)
	return nil
}
