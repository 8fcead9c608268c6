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

const shellPath = "/bin/sh"

// exitKilled is what a process that ended by SIGKILL reports: 128 plus the signal's number.
const exitKilled = 128 + int32(syscall.SIGKILL)

// keeper runs a container's command and writes its exit code into a file, so that a node that was killed and started again
// still learns it. It stands outside the command's process group, so that no signal to the container reaches it.
const keeper = `keeper_exit_file=$1; shift; "$@"; keeper_code=$?; echo "$keeper_code" >"$keeper_exit_file"; exit "$keeper_code"`

// announcer is the first program of the new process group: it tells the node its number and becomes the command. From the
// moment that the node knows the group, no signal to it can be lost.
const announcer = `echo $$ >&3; exec 3>&-; exec "$@"`

// processSpec is one run of one container.
type processSpec struct {
	argv     []string
	env      []string
	dir      string
	logFile  string
	exitFile string
	niceness int
}

// processID names a running container beyond reuse of process numbers.
type processID struct {
	Keeper int `json:"keeper"`
	// StartTicks is the keeper's start in clock ticks since boot, field 22 of /proc/<pid>/stat.
	StartTicks uint64 `json:"startTicks"`
	// Group is the process group of the container's command.
	Group int `json:"group"`
}

// process is a running process group and its keeper.
type process struct {
	id       processID
	exitFile string
	// wait returns when the keeper has ended, which it does after the command.
	wait func()
}

// startProcess starts a process group of its own. It fails when the command cannot be found or executed.
func startProcess(spec processSpec) (*process, error) {
	command, err := keptCommand(spec)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(spec.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the container's log: %w", err)
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	announced, announce, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.argv[0], err)
	}
	defer announced.Close()
	command.ExtraFiles = []*os.File{announce}
	err = command.Start()
	announce.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.argv[0], err)
	}
	// The exit code comes from the exit file, as it does after a restart of the node.
	started := &process{id: processID{Keeper: command.Process.Pid}, exitFile: spec.exitFile, wait: func() { _ = command.Wait() }}
	started.id.StartTicks, _ = startTicks(started.id.Keeper)
	if _, err := fmt.Fscan(announced, &started.id.Group); err != nil {
		started.wait()
		return nil, fmt.Errorf("start %s: its process group was not announced: %w", spec.argv[0], err)
	}
	return started, nil
}

// keptCommand returns the keeper's command line: keeper, new session, niceness, announcer, and the container's own command.
func keptCommand(spec processSpec) (*exec.Cmd, error) {
	program, err := findProgram(spec)
	if err != nil {
		return nil, err
	}
	newSession, err := exec.LookPath("setsid")
	if err != nil {
		return nil, fmt.Errorf("setsid of util-linux is needed to run containers: %w", err)
	}
	arguments := []string{"-c", keeper, "keeper", spec.exitFile, newSession}
	if spec.niceness != 0 {
		nice, err := exec.LookPath("nice")
		if err != nil {
			return nil, fmt.Errorf("nice of coreutils is needed to run containers: %w", err)
		}
		arguments = append(arguments, nice, "-n", strconv.Itoa(spec.niceness))
	}
	arguments = append(arguments, shellPath, "-c", announcer, "announcer", program)
	command := exec.Command(shellPath, append(arguments, spec.argv[1:]...)...)
	command.Env, command.Dir = spec.env, spec.dir
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return command, nil
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

// adoptProcess returns a process group that an earlier life of this node started, or false when its keeper has ended.
func adoptProcess(id processID, exitFile string) (*process, bool) {
	// The descriptor is opened before the check, so that it cannot name a later process of the same number.
	descriptor, err := unix.PidfdOpen(id.Keeper, 0)
	if err != nil {
		return nil, false
	}
	if ticks, err := startTicks(id.Keeper); err != nil || ticks != id.StartTicks {
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
	_ = syscall.Kill(-p.id.Group, signal)
}

// waitForExit returns the exit code once nothing of the group lives. What the command left behind is killed, as it is when
// the first process of a container ends; so is a command that lost its keeper.
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
	if errors.Is(syscall.Kill(-p.id.Group, 0), syscall.ESRCH) {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return false
	}
	for _, stat := range stats {
		fields, err := statFields(stat)
		if err == nil && fields[statGroup] == strconv.Itoa(p.id.Group) && fields[statState] != "Z" && fields[statState] != "X" {
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
