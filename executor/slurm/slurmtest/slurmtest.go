// Package slurmtest starts Slurm clusters for tests: a real controller and real nodes, each node in its own
// namespaces, with devices that do nothing. Nodes see the file system of the machine, like a shared file system of a
// cluster; one directory can be hidden from them, and one can be a small disk of each node. It needs Linux, root, and
// Debian's slurmctld, slurmd, slurm-client and munge.
package slurmtest

// Nodes describes the nodes of a cluster, whose names are n1, n2, …
type Nodes struct {
	Count int    // 0: one
	GPUs  int    // of each node, of the type h200
	Hides string // a directory hidden from the nodes; "": none
	Disk  string // a directory that is an 8 MiB disk of each node, empty when the node starts; "": none
	// additional lines of slurm.conf
	Config []string
}
