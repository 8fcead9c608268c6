package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func madeVolume(t *testing.T, source corev1.VolumeSource) (string, error) {
	t.Helper()
	names := somePod
	names.pod = somePod.pod.DeepCopy()
	names.pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
	maker := volumeMaker{
		names: names, configs: knownConfigs{"settings": {"a.yaml": "A", "b.yaml": "B"}}, dir: t.TempDir(), token: "secret-token",
	}
	dirs, err := maker.prepare(t.Context())
	return dirs["v"], err
}

func settings(items ...corev1.KeyToPath) *corev1.ConfigMapVolumeSource {
	return &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Items: items}
}

func TestAConfigMapBecomesADirectoryOfFiles(t *testing.T) {
	dir, err := madeVolume(t, corev1.VolumeSource{ConfigMap: settings()})
	if err != nil {
		t.Fatal(err)
	}
	if contents(t, filepath.Join(dir, "a.yaml")) != "A" || contents(t, filepath.Join(dir, "b.yaml")) != "B" {
		t.Fatal("the files do not hold the values")
	}
}

func TestOnlyTheItemsNamedAreWritten(t *testing.T) {
	dir, err := madeVolume(t, corev1.VolumeSource{ConfigMap: settings(corev1.KeyToPath{Key: "a.yaml", Path: "sub/x.yaml"})})
	if err != nil {
		t.Fatal(err)
	}
	if contents(t, filepath.Join(dir, "sub", "x.yaml")) != "A" {
		t.Fatal("the item is not where its path says")
	}
	if _, err := os.Stat(filepath.Join(dir, "b.yaml")); err == nil {
		t.Fatal("a key that is no item was written")
	}
}

func TestAProjectedVolumeHoldsAllItsSources(t *testing.T) {
	dir, err := madeVolume(t, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
		}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"token": "secret-token", "a.yaml": "A", "namespace": "default"} {
		if got := contents(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

func TestAHostPathIsUsedAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made")
	kind := corev1.HostPathDirectoryOrCreate
	dir, err := madeVolume(t, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}})
	if err != nil || dir != path {
		t.Fatalf("got %q, %v", dir, err)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Fatalf("the directory was not made: %v", err)
	}
}

func TestAVolumeThatCannotBeMadeIsNamed(t *testing.T) {
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}
	if _, err := madeVolume(t, claim); err == nil || !strings.Contains(err.Error(), `volume "v": its type is not supported`) {
		t.Fatalf("got %v", err)
	}
}
