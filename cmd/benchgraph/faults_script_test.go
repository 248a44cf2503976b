//go:build linux && faults

package main

import "testing"

// TestFaultScript runs the stories below testdata/faults.
func TestFaultScript(t *testing.T) { runScripts(t, "testdata/faults") }
