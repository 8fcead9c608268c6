package node

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// knownConfigs holds ConfigMaps and Secrets by name.
type knownConfigs map[string]map[string]string

func (k knownConfigs) configMap(_ context.Context, _, name string) (map[string]string, error) {
	found, isKnown := k[name]
	if !isKnown {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return found, nil
}

func (k knownConfigs) secret(ctx context.Context, namespace, name string) (map[string]string, error) {
	return k.configMap(ctx, namespace, name)
}

func fieldVariable(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func configVariable(name, object, key string, optional bool) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: object}, Key: key, Optional: &optional,
	}}}
}

var somePod = podNames{
	pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "engine-0", UID: "u1", Labels: map[string]string{"fish-tts.io/class": "inference"},
		},
		Spec: corev1.PodSpec{NodeName: "node-0"},
	},
	address: "127.1.0.7", hostAddress: "127.0.0.2",
}

func TestEachSourceOfAVariable(t *testing.T) {
	container := &corev1.Container{
		EnvFrom: []corev1.EnvFromSource{{
			Prefix: "CFG_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
		}},
		Env: []corev1.EnvVar{
			{Name: "LITERAL", Value: "x"},
			{Name: "EARLIER", Value: "$(LITERAL) $(POD_IP) $(CFG_level)"},
			fieldVariable("POD_IP", "status.podIP"),
			{Name: "URL", Value: "http://$(POD_IP):8080"},
			fieldVariable("NODE", "spec.nodeName"),
			fieldVariable("HOST", "status.hostIP"),
			fieldVariable("ACCOUNT", "spec.serviceAccountName"),
			fieldVariable("CLASS", "metadata.labels['fish-tts.io/class']"),
			configVariable("LEVEL", "settings", "level", false),
			configVariable("ABSENT", "missing", "level", true),
			{Name: "MEMORY_MB", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
				Resource: "limits.memory", Divisor: resource.MustParse("1Mi"),
			}}},
			{Name: "CPUS", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "requests.cpu"}}},
		},
		Resources: corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
		},
	}
	configs := knownConfigs{"settings": {"level": "debug"}}
	got, err := containerEnv(t.Context(), container, somePod, configs, map[string]string{"PATH": "/bin", "LITERAL": "of the image"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"PATH": "/bin", "LITERAL": "x", "EARLIER": "x $(POD_IP) debug", "POD_IP": "127.1.0.7", "URL": "http://127.1.0.7:8080",
		"NODE": "node-0", "HOST": "127.0.0.2", "ACCOUNT": "default", "CLASS": "inference", "CFG_level": "debug", "LEVEL": "debug",
		"MEMORY_MB": "1024", "CPUS": "2",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if value, isSet := got["ABSENT"]; isSet {
		t.Errorf("an optional variable without a source is set to %q", value)
	}
}

func TestAVariableThatCannotBeResolvedIsNamed(t *testing.T) {
	configs := knownConfigs{"settings": {"level": "debug"}}
	for want, variable := range map[string]corev1.EnvVar{
		`env A: no key "lvel" in "settings"; it has [level]`: configVariable("A", "settings", "lvel", false),
		`env B: configmaps "absent" not found`:               configVariable("B", "absent", "level", false),
		`env C: fieldRef "spec.hostname" is not known`:       fieldVariable("C", "spec.hostname"),
	} {
		_, err := containerEnv(
			t.Context(), &corev1.Container{Env: []corev1.EnvVar{variable}}, somePod, configs, map[string]string{},
		)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
