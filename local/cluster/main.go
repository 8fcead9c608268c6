// Command fish-cluster is a one-machine Kubernetes in one binary: etcd, the three control-plane programs, and a node that
// runs pods as ordinary processes. Each sub-command takes exactly the flags of the program it is named after.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"fish-tts.io/local/cluster/node"
)

// exitUsage is EX_USAGE of sysexits.h: the arguments are wrong, and starting again will not help.
const exitUsage = 64

// programs maps each sub-command to a function that runs it with the arguments after its name and returns an exit code.
var programs = map[string]func(arguments []string) int{
	"etcd":                    runEtcd,
	"kube-apiserver":          runAPIServer,
	"kube-scheduler":          runScheduler,
	"kube-controller-manager": runControllerManager,
	"node":                    node.Main,
}

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(arguments []string) int {
	known := strings.Join(slices.Sorted(maps.Keys(programs)), ", ")
	if len(arguments) == 0 {
		fmt.Fprintf(os.Stderr, "fish-cluster: no sub-command given; expected one of %s\n", known)
		return exitUsage
	}
	program, found := programs[arguments[0]]
	if !found {
		fmt.Fprintf(os.Stderr, "fish-cluster: unknown sub-command %q; expected one of %s\n", arguments[0], known)
		return exitUsage
	}
	return program(arguments[1:])
}
