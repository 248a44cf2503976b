//go:build !linux

package apptainer

import "github.com/benchgraph/benchgraph/executor"

// Engine does nothing on this system: Apptainer runs only on Linux.
type Engine struct{}

// Instead returns nil.
func Instead(map[string]string, string, executor.Executor, func(string, ...any)) *Engine { return nil }

// Environ returns environ.
func (*Engine) Environ(environ map[string]string) map[string]string { return environ }

// Name returns the name of the engine in messages.
func (*Engine) Name(podman bool) string {
	if podman {
		return "Podman"
	}
	return "Docker Engine"
}

// Close does nothing.
func (*Engine) Close() error { return nil }
