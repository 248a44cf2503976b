// Command benchgraph-modal runs jobs of benchgraph as sandboxes of Modal. benchgraph starts it, and sends it calls by
// its standard input.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/benchgraph/benchgraph/executor/modal/service"
	"github.com/benchgraph/benchgraph/executor/pipe"
)

func main() {
	// Sandboxes of the newer kind have no GPUs, and cannot be found by their tags.
	_ = os.Setenv("MODAL_SANDBOX_V2", "0")
	err := pipe.Serve(context.Background(), os.Stdin, os.Stdout, open)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchgraph-modal:", err)
		os.Exit(1)
	}
}

func open(ctx context.Context, settings json.RawMessage, told func(string)) (pipe.Scheduler, error) {
	o := service.Options{Told: told}
	if err := json.Unmarshal(settings, &o.Asks); err != nil {
		return nil, err
	}
	return service.Open(ctx, o)
}
