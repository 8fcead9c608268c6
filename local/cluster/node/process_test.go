package node

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell describes a run of a shell script with files of its own.
func shell(t *testing.T, script string) processSpec {
	t.Helper()
	dir := t.TempDir()
	return processSpec{
		argv: []string{"sh", "-c", script}, env: []string{"PATH=/usr/bin:/bin"}, dir: dir,
		logFile: filepath.Join(dir, "log"), exitFile: filepath.Join(dir, "exit"),
	}
}

func started(t *testing.T, spec processSpec) *process {
	t.Helper()
	running, err := startProcess(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { running.signal(syscall.SIGKILL) })
	return running
}

func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// eventually waits for what another process or goroutine is about to do.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func writes(path, text string) func() bool {
	return func() bool {
		found, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(found), text)
	}
}

func TestTheExitCodeOfACommandIsKept(t *testing.T) {
	if code := started(t, shell(t, "exit 75")).waitForExit(); code != 75 {
		t.Fatalf("got %d", code)
	}
}

func TestACommandThatDiesOfASignalExitsWithItsNumber(t *testing.T) {
	spec := shell(t, "echo up; exec sleep 60")
	running := started(t, spec)
	eventually(t, "the command runs", writes(spec.logFile, "up"))
	running.signal(syscall.SIGTERM)
	if code := running.waitForExit(); code != 128+int32(syscall.SIGTERM) {
		t.Fatalf("got %d", code)
	}
}

func TestACommandThatHandlesSIGTERMChoosesItsExitCode(t *testing.T) {
	spec := shell(t, "trap 'exit 75' TERM; echo up; while :; do sleep 0.01; done")
	running := started(t, spec)
	eventually(t, "the command runs", writes(spec.logFile, "up"))
	running.signal(syscall.SIGTERM)
	if code := running.waitForExit(); code != 75 {
		t.Fatalf("got %d", code)
	}
}

func TestAKilledGroupExitsAsKilled(t *testing.T) {
	running := started(t, shell(t, "sleep 60"))
	running.signal(syscall.SIGKILL)
	if code := running.waitForExit(); code != exitKilled {
		t.Fatalf("got %d", code)
	}
}

func TestWhatACommandLeavesBehindEndsWithIt(t *testing.T) {
	spec := shell(t, "sleep 60 & echo $!")
	started(t, spec).waitForExit()
	left := strings.TrimSpace(contents(t, spec.logFile))
	if fields, err := statFields("/proc/" + left + "/stat"); err == nil && fields[statState] != "Z" {
		t.Fatalf("process %s still runs", left)
	}
}

func TestBothOutputsGoToTheLogInOrder(t *testing.T) {
	spec := shell(t, "echo out; echo err >&2; echo out again")
	started(t, spec).waitForExit()
	if got := contents(t, spec.logFile); got != "out\nerr\nout again\n" {
		t.Fatalf("got %q", got)
	}
}

func TestNicenessIsAddedToTheNodesOwn(t *testing.T) {
	plain, nicer := shell(t, "nice"), shell(t, "nice")
	nicer.niceness = 5
	started(t, plain).waitForExit()
	started(t, nicer).waitForExit()
	own, _ := strconv.Atoi(strings.TrimSpace(contents(t, plain.logFile)))
	// 19 is the nicest that there is, and the tests may run at it.
	if got, want := strings.TrimSpace(contents(t, nicer.logFile)), strconv.Itoa(min(own+5, 19)); got != want {
		t.Fatalf("niceness is %s, want %s", got, want)
	}
}

func TestAMissingCommandIsNamedWithThePlacesSearched(t *testing.T) {
	spec := shell(t, "")
	spec.argv = []string{"no-such-command"}
	if _, err := startProcess(spec); err == nil || !strings.Contains(err.Error(), `"no-such-command": executable file not found in PATH=`) {
		t.Fatalf("got %v", err)
	}
}

func TestAnAdoptedProcessIsWaitedForAndKeepsItsExitCode(t *testing.T) {
	spec := shell(t, "trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done")
	original := started(t, spec)
	// The test is the parent and must reap; the adopted process below knows nothing of that.
	reaped := make(chan struct{})
	go func() { original.wait(); close(reaped) }()
	eventually(t, "the command runs", writes(spec.logFile, "up"))
	adopted, lives := adoptProcess(original.id, spec.exitFile)
	if !lives {
		t.Fatal("a running process was not adopted")
	}
	adopted.signal(syscall.SIGTERM)
	if code := adopted.waitForExit(); code != 3 {
		t.Fatalf("got %d", code)
	}
	<-reaped
}

func TestAnotherProcessOfTheSameNumberIsNotAdopted(t *testing.T) {
	running := started(t, shell(t, "sleep 60"))
	other := running.id
	other.StartTicks++
	if _, lives := adoptProcess(other, running.exitFile); lives {
		t.Fatal("adopted a process that started at another time")
	}
}

func TestASIGTERMRightAfterTheStartIsNotLost(t *testing.T) {
	for range 20 {
		running := started(t, shell(t, "exec sleep 60"))
		running.signal(syscall.SIGTERM)
		if code := running.waitForExit(); code != 128+int32(syscall.SIGTERM) {
			t.Fatalf("got %d", code)
		}
	}
}
