// Command benchgraph-kubernetes runs jobs of benchgraph as Jobs of a Kubernetes cluster. benchgraph starts it, and
// sends it calls by its standard input.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/benchgraph/benchgraph/executor/kubernetes/cluster"
	"github.com/benchgraph/benchgraph/executor/pipe"
)

func main() {
	err := pipe.Serve(context.Background(), os.Stdin, os.Stdout,
		func(ctx context.Context, settings json.RawMessage, told func(string)) (pipe.Scheduler, error) {
			o := cluster.Options{Told: told}
			if err := json.Unmarshal(settings, &o.Asks); err != nil {
				return nil, err
			}
			return cluster.Open(ctx, o)
		})
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchgraph-kubernetes:", err)
		os.Exit(1)
	}
}
