package node

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// volumeMaker makes the directories behind a pod's volumes.
type volumeMaker struct {
	names   podNames
	configs configReader
	// dir is the pod's own directory.
	dir string
	// token is the pod's ServiceAccount token, empty when it has none.
	token string
}

// prepare returns the directory (or, for hostPath, file) behind each volume. It may run again for the same pod: contents of an
// emptyDir stay.
func (m volumeMaker) prepare(ctx context.Context) (map[string]string, error) {
	dirs := map[string]string{}
	for _, volume := range m.names.pod.Spec.Volumes {
		dir, err := m.prepareOne(ctx, volume)
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w", volume.Name, err)
		}
		dirs[volume.Name] = dir
	}
	return dirs, nil
}

func (m volumeMaker) prepareOne(ctx context.Context, volume corev1.Volume) (string, error) {
	if volume.HostPath != nil {
		return volume.HostPath.Path, prepareHostPath(volume.HostPath)
	}
	dir := filepath.Join(m.dir, "volumes", volume.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if volume.EmptyDir != nil {
		return dir, nil
	}
	files, err := m.files(ctx, volume.VolumeSource)
	if err != nil {
		return "", err
	}
	return dir, writeFiles(dir, files)
}

// files returns the contents of a volume by relative path.
func (m volumeMaker) files(ctx context.Context, source corev1.VolumeSource) (map[string]string, error) {
	switch {
	case source.ConfigMap != nil:
		found, err := m.configs.configMap(ctx, m.names.pod.Namespace, source.ConfigMap.Name)
		return selected(found, err, source.ConfigMap.Items, source.ConfigMap.Optional)
	case source.Secret != nil:
		found, err := m.configs.secret(ctx, m.names.pod.Namespace, source.Secret.SecretName)
		return selected(found, err, source.Secret.Items, source.Secret.Optional)
	case source.DownwardAPI != nil:
		return m.downward(source.DownwardAPI.Items)
	case source.Projected != nil:
		return m.projected(ctx, source.Projected.Sources)
	default:
		return nil, fmt.Errorf("its type is not supported; expected emptyDir, hostPath, configMap, secret, downwardAPI or projected")
	}
}

func (m volumeMaker) projected(ctx context.Context, sources []corev1.VolumeProjection) (map[string]string, error) {
	all := map[string]string{}
	for _, source := range sources {
		files, err := m.projection(ctx, source)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

func (m volumeMaker) projection(ctx context.Context, source corev1.VolumeProjection) (map[string]string, error) {
	switch {
	case source.ConfigMap != nil:
		found, err := m.configs.configMap(ctx, m.names.pod.Namespace, source.ConfigMap.Name)
		return selected(found, err, source.ConfigMap.Items, source.ConfigMap.Optional)
	case source.Secret != nil:
		found, err := m.configs.secret(ctx, m.names.pod.Namespace, source.Secret.Name)
		return selected(found, err, source.Secret.Items, source.Secret.Optional)
	case source.DownwardAPI != nil:
		return m.downward(source.DownwardAPI.Items)
	case source.ServiceAccountToken != nil:
		return map[string]string{source.ServiceAccountToken.Path: m.token}, nil
	default:
		return nil, fmt.Errorf("a projected source is not supported; expected configMap, secret, downwardAPI or serviceAccountToken")
	}
}

func (m volumeMaker) downward(items []corev1.DownwardAPIVolumeFile) (map[string]string, error) {
	files := map[string]string{}
	for _, item := range items {
		if item.FieldRef == nil {
			return nil, fmt.Errorf("downwardAPI file %q: expected a fieldRef", item.Path)
		}
		value, err := podField(m.names, item.FieldRef.FieldPath)
		if err != nil {
			return nil, err
		}
		files[item.Path] = value
	}
	return files, nil
}

// selected returns the values under their file names: all of them, or only the items named.
func selected(found map[string]string, err error, items []corev1.KeyToPath, optional *bool) (map[string]string, error) {
	if err := unlessOptional(err, optional); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return found, nil
	}
	files := map[string]string{}
	for _, item := range items {
		value, isSet, err := keyOf(found, nil, "the volume's source", item.Key, optional)
		if err != nil {
			return nil, err
		}
		if isSet {
			files[item.Path] = value
		}
	}
	return files, nil
}

func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := writeFileAtomically(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func prepareHostPath(source *corev1.HostPathVolumeSource) error {
	kind := corev1.HostPathUnset
	if source.Type != nil {
		kind = *source.Type
	}
	if kind == corev1.HostPathDirectoryOrCreate {
		return os.MkdirAll(source.Path, 0o755)
	}
	if kind == corev1.HostPathUnset {
		return nil
	}
	info, err := os.Stat(source.Path)
	if err != nil {
		return fmt.Errorf("hostPath of type %s: %w", kind, err)
	}
	if kind == corev1.HostPathDirectory && !info.IsDir() {
		return fmt.Errorf("hostPath %s is not a directory", source.Path)
	}
	return nil
}

// containerMounts returns where a container's mount paths lead.
func containerMounts(container *corev1.Container, volumeDirs map[string]string, values map[string]string) ([]mount, error) {
	var mounts []mount
	for _, volumeMount := range container.VolumeMounts {
		dir, known := volumeDirs[volumeMount.Name]
		if !known {
			return nil, fmt.Errorf("volumeMount %q names no volume of the pod", volumeMount.Name)
		}
		subPath := volumeMount.SubPath
		if volumeMount.SubPathExpr != "" {
			subPath = expand(volumeMount.SubPathExpr, values)
		}
		mounts = append(mounts, mount{Path: filepath.Clean(volumeMount.MountPath), Dir: filepath.Join(dir, subPath)})
	}
	return mounts, nil
}
