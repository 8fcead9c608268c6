package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podRecord is what the node must know about a pod after it was killed and started again.
type podRecord struct {
	Pod        *corev1.Pod                `json:"pod"`
	Address    string                     `json:"address"`
	GPUs       []string                   `json:"gpus,omitempty"`
	StartedAt  metav1.Time                `json:"startedAt"`
	Containers map[string]containerRecord `json:"containers,omitempty"`
}

type containerRecord struct {
	Status  corev1.ContainerStatus `json:"status"`
	Process *processID             `json:"process,omitempty"`
	Place   place                  `json:"place"`
}

const recordFile = "pod.json"

// writeRecord keeps a pod's record in its directory.
func writeRecord(podDir string, record podRecord) error {
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode the record of pod %s: %w", record.Pod.Name, err)
	}
	return writeFileAtomically(filepath.Join(podDir, recordFile), text, 0o600)
}

// readRecords returns the records below the directory of pods. A directory without a readable record belongs to a pod that
// never started a process; it is removed.
func readRecords(podsDir string) ([]podRecord, error) {
	entries, err := os.ReadDir(podsDir)
	if err != nil {
		return nil, fmt.Errorf("read the node's pods: %w", err)
	}
	var records []podRecord
	for _, entry := range entries {
		dir := filepath.Join(podsDir, entry.Name())
		var record podRecord
		text, err := os.ReadFile(filepath.Join(dir, recordFile))
		if err == nil {
			err = json.Unmarshal(text, &record)
		}
		if err != nil || record.Pod == nil {
			if err := os.RemoveAll(dir); err != nil {
				return nil, fmt.Errorf("remove a pod directory without a record: %w", err)
			}
			continue
		}
		records = append(records, record)
	}
	return records, nil
}

// writeFileAtomically replaces a file as a whole: a reader finds the old text or the new one.
func writeFileAtomically(path string, text []byte, mode os.FileMode) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(temporary.Name())
	if _, err := temporary.Write(text); err != nil {
		temporary.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := temporary.Chmod(mode); err != nil {
		temporary.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := temporary.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
