package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const table = `
images:
  fish-tts/engine: {command: [python, -m, fish_engine], env: {OMP_NUM_THREADS: "1"}}
  fish-tts/operator: {command: [python, -m, fish_operator]}
`

func imageTable(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "images.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAnImageIsFoundByItsRepository(t *testing.T) {
	file := imageTable(t, table)
	for _, name := range []string{"fish-tts/engine", "fish-tts/engine:0.1.0", "fish-tts/engine:0.1.0@sha256:abc"} {
		found, err := findImage(file, name)
		if err != nil || !slices.Equal(found.Command, []string{"python", "-m", "fish_engine"}) || found.Env["OMP_NUM_THREADS"] != "1" {
			t.Errorf("%s: got %v, %v", name, found, err)
		}
	}
}

func TestTheColonOfARegistryPortIsNoTag(t *testing.T) {
	for name, want := range map[string]string{
		"localhost:5000/engine":     "localhost:5000/engine",
		"localhost:5000/engine:1.0": "localhost:5000/engine",
	} {
		if got := repository(name); got != want {
			t.Errorf("repository(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestAnUnknownImageIsToldTheKnownOnes(t *testing.T) {
	_, err := findImage(imageTable(t, table), "nginx:1.27")
	unknown := new(unknownImageError)
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "known images: fish-tts/engine, fish-tts/operator") {
		t.Fatalf("got %v", err)
	}
}

func TestABrokenImageTableSaysWhatItShouldBe(t *testing.T) {
	if _, err := findImage(imageTable(t, "fish-tts/engine: [python]"), "fish-tts/engine"); err == nil ||
		!strings.Contains(err.Error(), "expected `images:") {
		t.Fatalf("got %v", err)
	}
}
