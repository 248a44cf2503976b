// Package kubetest starts the API server of a Kubernetes cluster for tests, with its store: both are real. The tests
// play the Job controller, the scheduler and the kubelet of one node: they write through the API what those would
// write, and run the commands of Pods as processes of this machine. It needs Linux, root, Debian's etcd-server, and the
// program that "make kubernetes" builds. With the script run beside this file, all of them are real.
package kubetest

// Image is the name of an image that tests name; nothing pulls it.
const Image = "benchgraph.test/busybox:1"
