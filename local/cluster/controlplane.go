package main

import (
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func runEtcd(arguments []string) int {
	// etcd ends the process itself, with its own exit code.
	etcdmain.Main(append([]string{"etcd"}, arguments...))
	return 0
}

func runAPIServer(arguments []string) int {
	return runCommand(apiserver.NewAPIServerCommand(), arguments)
}

func runScheduler(arguments []string) int {
	return runCommand(scheduler.NewSchedulerCommand(), arguments)
}

func runControllerManager(arguments []string) int {
	return runCommand(controllermanager.NewControllerManagerCommand(), arguments)
}

func runCommand(command *cobra.Command, arguments []string) int {
	command.SetArgs(arguments)
	return cli.Run(command)
}
