// Package node is a Kubernetes node whose containers are ordinary process groups of this machine.
//
// It is a virtual-kubelet provider. virtual-kubelet registers the node, renews its lease and watches its pods; this package
// runs them. Each pod belongs to one goroutine (worker.go) that alone changes it: what happens to a pod reaches the worker as
// a message, and after each message the worker compares what should run with what runs. Deciding is pure and has the tests
// (allocate, backoff, env, mounts, probe, status, termination); acting is in process, volumes, hooks and guard.
//
// What it is not: an isolation boundary. Processes share the machine's files, users and network, each pod has a loopback
// address of its own, and security contexts and resource limits are ignored.
package node
