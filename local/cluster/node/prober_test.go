package node

import (
	"net"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestAPodIsReadySoonAfterItsProbeWouldSucceed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	pod := shellPod(corev1.RestartPolicyNever, untilSIGTERM)
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 60, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(int32(port))}},
	}
	w := newStage(t).run(t, pod)
	eventually(t, "the container runs", writes(w.logOf("c0"), "up"))
	if conditionOf(w.status(), corev1.PodReady).Status == corev1.ConditionTrue {
		t.Fatal("the pod was ready before its port was open")
	}
	listener, err = net.Listen("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	eventually(t, "the pod is ready, long before a period has passed", func() bool {
		return conditionOf(w.status(), corev1.PodReady).Status == corev1.ConditionTrue
	})
}

func TestAFailedLivenessProbeRestartsTheContainer(t *testing.T) {
	pod := shellPod(corev1.RestartPolicyAlways, "trap 'exit 0' TERM; while :; do sleep 0.01; done")
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{
		FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "exit 1"}}},
	}
	w := newStage(t).run(t, pod)
	eventually(t, "the container was restarted", func() bool { return w.only().RestartCount > 0 })
}
