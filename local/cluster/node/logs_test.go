package node

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func logFileWith(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func hasEnded() bool { return false }

func TestTheWantedPartOfALog(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for query, example := range map[string]struct{ text, want string }{
		"":                        {"a\nb\nc\n", "a\nb\nc\n"},
		"tailLines=2":             {"a\nb\nc\n", "b\nc\n"},
		"tailLines=0":             {"a\nb\nc\n", ""},
		"tailLines=9":             {"a\nb\nc\n", "a\nb\nc\n"},
		"tailLines=1&follow=true": {"a\nb", "b"},
		"tailLines=2&previous=1":  {"a\n" + long + "\nc\n", long + "\nc\n"},
		"limitBytes=3":            {"a\nb\nc\n", "a\nb"},
	} {
		values, _ := url.ParseQuery(query)
		wanted, err := parseLogRequest(values)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		var got strings.Builder
		if err := copyLog(t.Context(), &got, logFileWith(t, example.text), wanted, hasEnded); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if got.String() != example.want {
			t.Errorf("%s: got %d bytes, want %d", query, got.Len(), len(example.want))
		}
	}
}

// sharedText is written by one goroutine and read by another.
type sharedText struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (s *sharedText) Write(text []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.Write(text)
}

func (s *sharedText) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

func TestAFollowedLogEndsWithItsContainer(t *testing.T) {
	file := logFileWith(t, "a\n")
	var isRunning atomic.Bool
	isRunning.Store(true)
	var got sharedText
	done := make(chan error)
	go func() {
		done <- copyLog(context.Background(), &got, file, logRequest{follow: true, tailLines: -1, limitBytes: -1}, isRunning.Load)
	}()
	eventually(t, "the first line is sent", func() bool { return got.String() == "a\n" })
	if err := os.WriteFile(file.Name(), []byte("a\nlast\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	isRunning.Store(false)
	if err := <-done; err != nil || got.String() != "a\nlast\n" {
		t.Fatalf("got %q, %v", got.String(), err)
	}
}

func TestALogRequestThatCannotBeAnsweredIsRefused(t *testing.T) {
	for query, want := range map[string]string{
		"tailLines=-1":    `tailLines is "-1"`,
		"limitBytes=0":    `limitBytes is "0"`,
		"timestamps=true": "timestamps is not supported",
	} {
		values, _ := url.ParseQuery(query)
		if _, err := parseLogRequest(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", query, err)
		}
	}
}
