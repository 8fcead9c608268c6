package node

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// apiConfigs reads ConfigMaps and Secrets from the API server. A pod's start is the only time they are read, so nothing is
// cached or watched.
type apiConfigs struct {
	client kubernetes.Interface
}

func (c apiConfigs) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	found, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(found.Data)+len(found.BinaryData))
	for key, value := range found.Data {
		values[key] = value
	}
	for key, value := range found.BinaryData {
		values[key] = string(value)
	}
	return values, nil
}

func (c apiConfigs) secret(ctx context.Context, namespace, name string) (map[string]string, error) {
	found, err := c.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(found.Data))
	for key, value := range found.Data {
		values[key] = string(value)
	}
	return values, nil
}
