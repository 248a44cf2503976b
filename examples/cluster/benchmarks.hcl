# One commit, three ways, on the nodes of a Slurm cluster: the parent, the author's change, and an agent's. Programs are compiled
# here; each block is a job. examples/cluster/run starts a cluster of two nodes on this machine, and applies this file there.
#
# On a cluster of your own: a directory that all nodes see as BENCHGRAPH_VAR_shared, node.json from a job there
# (srun benchgraph devices -json >node.json), and the names of your partition.

benchgraph {
  store { url = "file://${var.shared}" }
}

variable "shared" {
  description = "a directory that all nodes of the cluster see"
}

machine "node" { devices = "node.json" }

executor "slurm" "local" {
  machine   = machine.node
  partition = "all"
  cpus      = 1
  time      = "10m"
  max_jobs  = 2
}

commit "sum" { title = "the sum of a matrix is taken by rows" }

variant "parent" {
  baseline = true
  params   = { change = "-DBY_COLUMNS" }
}
variant "human" {
  params = { change = "" }
}
variant "agent" {
  params = { change = "-DBY_COLUMNS -O1" }
}

task "sum" {
  for_each = candidates
  inputs   = ["sum.c"]
  command  = "cc ${each.variant.params.change} -o $OUT/sum sum.c"
  artefact = true
}

benchmark "speed" {
  for_each = candidates
  data     = { "sum" = task.sum[each.key] }
  command  = "./sum"
  metrics {
    metric "rate" {
      match  = "rate: ([0-9.]+) M/s"
      unit   = "M/s"
      better = "higher"
    }
  }
  design { samples = 4 }
}

compare "three_way" { of = [benchmark.speed] }

report "speed" { of = [compare.three_way] }
