package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// configReader reads ConfigMaps and Secrets.
type configReader interface {
	configMap(ctx context.Context, namespace, name string) (map[string]string, error)
	secret(ctx context.Context, namespace, name string) (map[string]string, error)
}

// podNames are the facts that fieldRef and the environment may ask for beside the pod object.
type podNames struct {
	pod         *corev1.Pod
	address     string
	hostAddress string
}

// containerEnv returns the environment that a container's spec asks for, on top of `base`. Later entries win and may refer to
// earlier ones; envFrom comes before env.
func containerEnv(
	ctx context.Context, container *corev1.Container, names podNames, configs configReader, base map[string]string,
) (map[string]string, error) {
	values := maps.Clone(base)
	for _, source := range container.EnvFrom {
		found, err := envFromSource(ctx, source, names.pod.Namespace, configs)
		if err != nil {
			return nil, err
		}
		for key, value := range found {
			values[source.Prefix+key] = value
		}
	}
	for _, variable := range container.Env {
		value, isSet, err := envValue(ctx, variable, container, names, configs, values)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", variable.Name, err)
		}
		if isSet {
			values[variable.Name] = value
		}
	}
	return values, nil
}

func envFromSource(
	ctx context.Context, source corev1.EnvFromSource, namespace string, configs configReader,
) (map[string]string, error) {
	switch {
	case source.ConfigMapRef != nil:
		found, err := configs.configMap(ctx, namespace, source.ConfigMapRef.Name)
		return found, unlessOptional(err, source.ConfigMapRef.Optional)
	case source.SecretRef != nil:
		found, err := configs.secret(ctx, namespace, source.SecretRef.Name)
		return found, unlessOptional(err, source.SecretRef.Optional)
	default:
		return nil, errors.New("envFrom: expected configMapRef or secretRef")
	}
}

// envValue returns one variable's value, and false for an optional one whose source is missing.
func envValue(
	ctx context.Context, variable corev1.EnvVar, container *corev1.Container, names podNames, configs configReader,
	earlier map[string]string,
) (string, bool, error) {
	source := variable.ValueFrom
	switch {
	case source == nil:
		return expand(variable.Value, earlier), true, nil
	case source.FieldRef != nil:
		value, err := podField(names, source.FieldRef.FieldPath)
		return value, err == nil, err
	case source.ResourceFieldRef != nil:
		value, err := containerResource(container, source.ResourceFieldRef)
		return value, err == nil, err
	case source.ConfigMapKeyRef != nil:
		selector := source.ConfigMapKeyRef
		found, err := configs.configMap(ctx, names.pod.Namespace, selector.Name)
		return keyOf(found, err, selector.Name, selector.Key, selector.Optional)
	case source.SecretKeyRef != nil:
		selector := source.SecretKeyRef
		found, err := configs.secret(ctx, names.pod.Namespace, selector.Name)
		return keyOf(found, err, selector.Name, selector.Key, selector.Optional)
	default:
		return "", false, errors.New("expected value, fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef")
	}
}

func keyOf(found map[string]string, err error, object, key string, optional *bool) (string, bool, error) {
	if err := unlessOptional(err, optional); err != nil {
		return "", false, err
	}
	value, isSet := found[key]
	if !isSet && !isTrue(optional) {
		return "", false, fmt.Errorf("no key %q in %q; it has %v", key, object, slices.Sorted(maps.Keys(found)))
	}
	return value, isSet, nil
}

// unlessOptional drops the error that an object is missing when the reference to it is optional.
func unlessOptional(err error, optional *bool) error {
	if isTrue(optional) && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func isTrue(flag *bool) bool {
	return flag != nil && *flag
}

// podField returns what a fieldRef path names.
func podField(names podNames, path string) (string, error) {
	pod := names.pod
	if value, isSubscript, err := subscriptedField(pod, path); isSubscript {
		return value, err
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return quotedLines(pod.Labels), nil
	case "metadata.annotations":
		return quotedLines(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return serviceAccountName(pod), nil
	case "status.podIP", "status.podIPs":
		return names.address, nil
	case "status.hostIP", "status.hostIPs":
		return names.hostAddress, nil
	default:
		return "", fmt.Errorf("fieldRef %q is not known; expected metadata.{name,namespace,uid,labels,annotations}, "+
			"spec.{nodeName,serviceAccountName} or status.{podIP,hostIP}", path)
	}
}

// subscriptedField reads metadata.labels['key'] and metadata.annotations['key'].
func subscriptedField(pod *corev1.Pod, path string) (string, bool, error) {
	field, subscript, found := strings.Cut(path, "['")
	if !found {
		return "", false, nil
	}
	key := strings.TrimSuffix(subscript, "']")
	switch field {
	case "metadata.labels":
		return pod.Labels[key], true, nil
	case "metadata.annotations":
		return pod.Annotations[key], true, nil
	default:
		return "", true, fmt.Errorf("fieldRef %q takes no subscript; only metadata.labels and metadata.annotations do", path)
	}
}

func quotedLines(values map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		lines = append(lines, fmt.Sprintf("%s=%q", key, values[key]))
	}
	return strings.Join(lines, "\n")
}

// containerResource returns a request or limit of the container as a whole number of the divisor, rounded up.
func containerResource(container *corev1.Container, selector *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(selector.Resource, ".")
	list := map[string]corev1.ResourceList{"limits": container.Resources.Limits, "requests": container.Resources.Requests}[kind]
	if list == nil {
		return "0", nil
	}
	quantity := list[corev1.ResourceName(name)]
	divisor := selector.Divisor
	if name == string(corev1.ResourceCPU) {
		unit := divisor.MilliValue()
		if unit == 0 {
			unit = 1000
		}
		return strconv.FormatInt((quantity.MilliValue()+unit-1)/unit, 10), nil
	}
	unit := max(divisor.Value(), 1)
	return strconv.FormatInt((quantity.Value()+unit-1)/unit, 10), nil
}

func serviceAccountName(pod *corev1.Pod) string {
	if pod.Spec.ServiceAccountName == "" {
		return "default"
	}
	return pod.Spec.ServiceAccountName
}
