//go:build linux && (faults || gpu)

package main

import (
	"fmt"
	"strings"
)

// ledger returns a project of nodes that ask for so many devices, in turns, and keep them for so many seconds. Each
// node takes its devices out of a directory that all share, and fails if one is taken.
func ledger(dir string, nodes int, widths []string, pause string) string {
	return fmt.Sprintf(`
benchgraph { sandbox = "none" }
variable "of" { type = number }

locals { widths = [%[3]s] }

benchmark "device" {
  for_each = { for i in range(%[2]d) : format("%%03d", i) => local.widths[i %% length(local.widths)] }
  gpus { count = each.value }
  command = <<-EOT
    n=0 # ${each.key}
    for d in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
      mkdir "%[1]s/$d" || { echo "device $d is taken"; exit 1; }
      n=$((n + 1))
    done
    test $n -eq ${each.value} || { echo "$n devices for ${each.value}"; exit 1; }
    sleep %[4]s
    for d in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do rmdir "%[1]s/$d"; done
    echo "work done: ${var.of} items/s"
  EOT
  design { samples = 1 }
  metrics {
    primary = "items"
    metric "items" {
      match  = "work done: ([0-9.]+) items/s"
      unit   = "items/s"
      better = "higher"
    }
  }
}
`, dir, nodes, strings.Join(widths, ", "), pause)
}
