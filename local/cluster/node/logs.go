package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// logPollPeriod is how often a followed log is looked at for more.
const logPollPeriod = 100 * time.Millisecond

// logRequest is which part of a container's log is wanted.
type logRequest struct {
	follow   bool
	previous bool
	// tailLines and limitBytes are negative for all.
	tailLines  int
	limitBytes int64
}

func parseLogRequest(query url.Values) (logRequest, error) {
	wanted := logRequest{tailLines: -1, limitBytes: -1}
	wanted.follow, _ = strconv.ParseBool(query.Get("follow"))
	wanted.previous, _ = strconv.ParseBool(query.Get("previous"))
	if text := query.Get("tailLines"); text != "" {
		lines, err := strconv.Atoi(text)
		if err != nil || lines < 0 {
			return logRequest{}, fmt.Errorf("tailLines is %q; expected a number of lines, 0 or more", text)
		}
		wanted.tailLines = lines
	}
	if text := query.Get("limitBytes"); text != "" {
		limit, err := strconv.ParseInt(text, 10, 64)
		if err != nil || limit < 1 {
			return logRequest{}, fmt.Errorf("limitBytes is %q; expected a number of bytes, 1 or more", text)
		}
		wanted.limitBytes = limit
	}
	for _, name := range []string{"sinceSeconds", "sinceTime", "timestamps"} {
		if value := query.Get(name); value != "" && value != "false" {
			return logRequest{}, fmt.Errorf("%s is not supported: containers write their logs without time stamps", name)
		}
	}
	return wanted, nil
}

// logServer answers the API server's /containerLogs requests.
type logServer struct {
	provider *provider
}

func (s logServer) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	wanted, err := parseLogRequest(request.URL.Query())
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	name := request.PathValue("container")
	pod, err := s.provider.GetPod(request.Context(), request.PathValue("namespace"), request.PathValue("pod"))
	if err != nil {
		http.Error(answer, err.Error(), http.StatusNotFound)
		return
	}
	path, err := s.logFile(pod, name, wanted.previous)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	file, err := os.Open(path)
	if err != nil {
		// Not 404: kubectl would replace the message by one of its own.
		http.Error(answer, fmt.Sprintf("container %q in pod %q has not started", name, pod.Name), http.StatusBadRequest)
		return
	}
	defer file.Close()
	writer := flushing{writer: answer, controller: http.NewResponseController(answer)}
	isOpen := func() bool { return s.isRunning(pod, name) }
	// The reader has gone when a write fails; there is nobody to tell.
	_ = copyLog(request.Context(), writer, file, wanted, isOpen)
}

// logFile returns the log of a container's current run, or of the one before.
func (s logServer) logFile(pod *corev1.Pod, name string, previous bool) (string, error) {
	for _, status := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
		if status.Name != name {
			continue
		}
		run := status.RestartCount
		if previous {
			run--
		}
		if run < 0 {
			return "", fmt.Errorf("previous terminated container %q in pod %q not found", name, pod.Name)
		}
		return runFile(containerDir(s.provider.podDir(pod.UID), name), run, "log"), nil
	}
	return "", fmt.Errorf("container %q is not in pod %q", name, pod.Name)
}

func (s logServer) isRunning(pod *corev1.Pod, name string) bool {
	w, isKnown := s.provider.worker(pod.UID)
	if !isKnown || w.hasFinished() {
		return false
	}
	for _, status := range w.snapshot.Load().Status.ContainerStatuses {
		if status.Name == name {
			return status.State.Running != nil
		}
	}
	return false
}

// copyLog writes the wanted part of a log, and what is added to it while the container runs when it is followed.
func copyLog(ctx context.Context, to io.Writer, file *os.File, wanted logRequest, isOpen func() bool) error {
	if wanted.tailLines >= 0 {
		if err := seekTail(file, wanted.tailLines); err != nil {
			return err
		}
	}
	var from io.Reader = file
	if wanted.limitBytes >= 0 {
		from = io.LimitReader(file, wanted.limitBytes)
	}
	for {
		// Asked before the copy, so that what was written until the end is still read.
		wasOpen := isOpen()
		if _, err := io.Copy(to, from); err != nil {
			return err
		}
		if !wanted.follow || !wasOpen {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(logPollPeriod):
		}
	}
}

// seekTail moves to the start of the last lines of a file, reading backwards in blocks.
func seekTail(file *os.File, lines int) error {
	const block = 64 << 10
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || lines == 0 {
		return err
	}
	buffer := make([]byte, block)
	isLastByte := true
	for start := end; start > 0; {
		size := min(start, block)
		start -= size
		if _, err := file.ReadAt(buffer[:size], start); err != nil {
			return err
		}
		part := buffer[:size]
		if isLastByte {
			// The line break at the very end closes the last line and starts none.
			part = bytes.TrimSuffix(part, []byte("\n"))
			isLastByte = false
		}
		for position := bytes.LastIndexByte(part, '\n'); position >= 0; position = bytes.LastIndexByte(part, '\n') {
			if lines--; lines == 0 {
				_, err := file.Seek(start+int64(position)+1, io.SeekStart)
				return err
			}
			part = part[:position]
		}
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// flushing sends each piece at once, so that a followed log appears as it is written.
type flushing struct {
	writer     io.Writer
	controller *http.ResponseController
}

func (f flushing) Write(text []byte) (int, error) {
	count, err := f.writer.Write(text)
	if err != nil {
		return count, err
	}
	return count, f.controller.Flush()
}
