package node

import "time"

// The kubelet's figures for a container that keeps ending.
const (
	firstBackoff      = 10 * time.Second
	longestBackoff    = 5 * time.Minute
	backoffResetAfter = 10 * time.Minute
)

// backoff spaces the restarts of one container. Its zero value lets the first restart happen at once, as the kubelet does.
type backoff struct {
	delay time.Duration
}

// next returns how long to wait before a restart, given how long the container ran.
func (b *backoff) next(ran time.Duration) time.Duration {
	if ran >= backoffResetAfter {
		b.delay = 0
	}
	wait := b.delay
	b.delay = min(max(2*b.delay, firstBackoff), longestBackoff)
	return wait
}
