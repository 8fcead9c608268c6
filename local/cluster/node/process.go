package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// exitKilled is what a process that ended by SIGKILL reports: 128 plus the signal's number.
const exitKilled = 128 + int32(syscall.SIGKILL)

// keeper runs a container's command and writes its exit code into a file, so that a node that was killed and started again
// still learns it. It lives through the signals that the whole group gets; the command, for which they are back at their
// defaults, does with them as it likes.
const keeper = `trap : TERM INT HUP QUIT USR1 USR2; exit_file=$1; shift; "$@"; code=$?; echo "$code" >"$exit_file"; exit "$code"`

// processSpec is one run of one container.
type processSpec struct {
	argv     []string
	env      []string
	dir      string
	logFile  string
	exitFile string
	niceness int
}

// processID names a process beyond reuse of its number.
type processID struct {
	PID int `json:"pid"`
	// StartTicks is the process's start in clock ticks since boot, field 22 of /proc/<pid>/stat.
	StartTicks uint64 `json:"startTicks"`
}

// process is a running process group. Its leader is the keeper.
type process struct {
	id       processID
	exitFile string
	// wait returns when the leader has ended.
	wait func()
}

// startProcess starts a process group of its own. It fails when the command cannot be found or executed.
func startProcess(spec processSpec) (*process, error) {
	program, err := findProgram(spec)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(spec.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the container's log: %w", err)
	}
	defer log.Close()
	arguments := []string{"-c", keeper, "keeper", spec.exitFile}
	if spec.niceness != 0 {
		arguments = append(arguments, "nice", "-n", strconv.Itoa(spec.niceness))
	}
	command := exec.Command("/bin/sh", append(append(arguments, program), spec.argv[1:]...)...)
	command.Env, command.Dir = spec.env, spec.dir
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	started := &process{
		id:       processID{PID: command.Process.Pid},
		exitFile: spec.exitFile,
		// The exit code comes from the exit file, as it does after a restart of the node.
		wait: func() { _ = command.Wait() },
	}
	started.id.StartTicks, _ = startTicks(started.id.PID)
	return started, nil
}

// findProgram resolves argv[0] in the container's own PATH and working directory.
func findProgram(spec processSpec) (string, error) {
	name := spec.argv[0]
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			name = filepath.Join(spec.dir, name)
		}
		return name, executable(name)
	}
	for _, entry := range spec.env {
		path, isPath := strings.CutPrefix(entry, "PATH=")
		if !isPath {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			candidate := filepath.Join(dir, name)
			if executable(candidate) == nil {
				return candidate, nil
			}
		}
		return "", fmt.Errorf("exec: %q: executable file not found in %s", name, entry)
	}
	return "", fmt.Errorf("exec: %q: executable file not found: the container has no PATH", name)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("exec: %s is not an executable file", path)
	}
	return nil
}

// adoptProcess returns a process group that an earlier life of this node started, or false when it has ended.
func adoptProcess(id processID, exitFile string) (*process, bool) {
	// The descriptor is opened before the check, so that it cannot name a later process of the same number.
	descriptor, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return nil, false
	}
	if ticks, err := startTicks(id.PID); err != nil || ticks != id.StartTicks {
		unix.Close(descriptor)
		return nil, false
	}
	wait := func() {
		defer unix.Close(descriptor)
		events := []unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(events, -1); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}
	return &process{id: id, exitFile: exitFile, wait: wait}, true
}

// signal sends a signal to the whole group. A group that has ended takes none.
func (p *process) signal(signal syscall.Signal) {
	_ = syscall.Kill(-p.id.PID, signal)
}

// waitForExit returns the exit code once nothing of the group lives. What the command left behind is killed, as it is when
// the first process of a container ends.
func (p *process) waitForExit() int32 {
	p.wait()
	for p.groupLives() {
		p.signal(syscall.SIGKILL)
		time.Sleep(2 * time.Millisecond)
	}
	return readExitCode(p.exitFile)
}

// readExitCode returns what the keeper wrote, or the code of a kill when it could not write.
func readExitCode(exitFile string) int32 {
	text, err := os.ReadFile(exitFile)
	if err != nil {
		return exitKilled
	}
	code, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return exitKilled
	}
	return int32(code)
}

// groupLives tells whether a process of the group is alive. Zombies are not: who waits for them is not ours to know.
func (p *process) groupLives() bool {
	if errors.Is(syscall.Kill(-p.id.PID, 0), syscall.ESRCH) {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return false
	}
	for _, stat := range stats {
		fields, err := statFields(stat)
		if err == nil && fields[statGroup] == strconv.Itoa(p.id.PID) && fields[statState] != "Z" && fields[statState] != "X" {
			return true
		}
	}
	return false
}

// Positions in /proc/<pid>/stat, counted after the command's name.
const (
	statState      = 0
	statGroup      = 2
	statStartTicks = 19
)

func startTicks(pid int) (uint64, error) {
	fields, err := statFields(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fields[statStartTicks], 10, 64)
}

// statFields returns the fields after the command's name, which is in brackets and may itself hold brackets and spaces.
func statFields(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= statStartTicks {
		return nil, fmt.Errorf("%s: expected at least %d fields after the name, found %d", path, statStartTicks+1, len(fields))
	}
	return fields, nil
}
