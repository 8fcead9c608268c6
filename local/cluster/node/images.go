package node

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// image is the local command that stands for a container image.
type image struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
}

// unknownImageError is reported as ErrImagePull.
type unknownImageError struct {
	name  string
	file  string
	known []string
}

func (e *unknownImageError) Error() string {
	return fmt.Sprintf("image %q is not in the image table %s; known images: %s", e.name, e.file, strings.Join(e.known, ", "))
}

// findImage looks an image up in the table. The table is read anew each time, so that a change to it counts at once.
func findImage(file, name string) (image, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return image{}, fmt.Errorf("read the image table: %w", err)
	}
	var table struct {
		Images map[string]image `json:"images"`
	}
	if err := yaml.UnmarshalStrict(text, &table); err != nil {
		return image{}, fmt.Errorf("image table %s: expected `images: {<repository>: {command: [...], env: {...}}}`: %w", file, err)
	}
	found, known := table.Images[repository(name)]
	if !known || len(found.Command) == 0 {
		return image{}, &unknownImageError{name: name, file: file, known: slices.Sorted(maps.Keys(table.Images))}
	}
	return found, nil
}

// repository returns an image's name without its tag and digest. A colon before the last slash belongs to a registry's port.
func repository(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		return name[:colon]
	}
	return name
}
