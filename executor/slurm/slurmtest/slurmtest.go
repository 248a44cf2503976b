// Package slurmtest starts Slurm clusters for tests: a real controller and real nodes, each node in namespaces of its
// own, with devices that do nothing. Nodes see the file system of the machine, as those of a cluster see a shared one;
// one directory can be hidden from them, and one can be a small disk of each node.
// It needs Linux, root, and Debian's slurmctld, slurmd, slurm-client and munge.
package slurmtest

// Nodes says which nodes a cluster has. They are called n1, n2, …
type Nodes struct {
	Count int    // 0: one
	GPUs  int    // of each node, of the type h200
	Hides string // a directory that the nodes do not see; "": they see everything
	Disk  string // a directory that is a disk of 8 MiB of each node, empty when the node starts; "": there is none
	// lines that are added to slurm.conf
	Config []string
}
