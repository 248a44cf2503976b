package executor_test

import (
	"testing"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
)

func TestHostPassesTheSuite(t *testing.T) {
	executortest.Run(t, executortest.Traits{}, func(t *testing.T) executor.Executor {
		return executor.NewHost(executor.HostOptions{Owner: t.TempDir()})
	})
}
