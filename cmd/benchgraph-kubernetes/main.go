// Command benchgraph-kubernetes speaks to the API server of a Kubernetes cluster for benchgraph, which starts it, writes
// calls to its standard input and reads the answers from its standard output.
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
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
