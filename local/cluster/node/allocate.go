package node

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
)

// outOfGPUsError says that a pod was bound here although its GPUs are held, which a node answers by failing the pod.
type outOfGPUsError struct {
	requested, used, capacity int
}

func (e *outOfGPUsError) Error() string {
	return fmt.Sprintf("Pod was rejected: Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
		gpuResource, e.requested, e.used, e.capacity)
}

// gpuPool knows which pod holds which GPU.
type gpuPool struct {
	ids    []string
	holder map[string]types.UID
}

// newGPUPool returns a pool of `count` free GPUs, named after their node.
func newGPUPool(nodeName string, count int) *gpuPool {
	pool := &gpuPool{holder: map[string]types.UID{}}
	for index := range count {
		pool.ids = append(pool.ids, fmt.Sprintf("GPU-%s-%d", nodeName, index))
	}
	return pool
}

// take hands `count` GPUs to a pod, lowest ids first, or none at all.
func (p *gpuPool) take(pod types.UID, count int) ([]string, error) {
	if free := len(p.ids) - len(p.holder); count > free {
		return nil, &outOfGPUsError{requested: count, used: len(p.holder), capacity: len(p.ids)}
	}
	var taken []string
	for _, id := range p.ids {
		if len(taken) == count {
			break
		}
		if _, held := p.holder[id]; !held {
			p.holder[id] = pod
			taken = append(taken, id)
		}
	}
	return taken, nil
}

// restore notes GPUs that a pod already holds, after a restart of the node.
func (p *gpuPool) restore(pod types.UID, ids []string) {
	for _, id := range ids {
		p.holder[id] = pod
	}
}

func (p *gpuPool) release(pod types.UID) {
	for id, holder := range p.holder {
		if holder == pod {
			delete(p.holder, id)
		}
	}
}

// addressPool hands each pod an address of its own.
type addressPool struct {
	prefix netip.Prefix
	last   netip.Addr
	holder map[netip.Addr]types.UID
}

func newAddressPool(prefix netip.Prefix) *addressPool {
	return &addressPool{prefix: prefix, last: prefix.Masked().Addr(), holder: map[netip.Addr]types.UID{}}
}

// take returns the next free address after the last one given, so that an address is not given again soon:
// a client that still holds the old one would otherwise talk to another pod. The first address names the block.
func (p *addressPool) take(pod types.UID) (netip.Addr, error) {
	candidate := p.last
	for wrapped := false; ; {
		candidate = candidate.Next()
		if !p.prefix.Contains(candidate) {
			if wrapped {
				return netip.Addr{}, fmt.Errorf("no free address in %s: all %d are held by pods", p.prefix, len(p.holder))
			}
			wrapped = true
			candidate = p.prefix.Masked().Addr()
			continue
		}
		if _, held := p.holder[candidate]; !held {
			p.holder[candidate] = pod
			p.last = candidate
			return candidate, nil
		}
	}
}

func (p *addressPool) restore(pod types.UID, address netip.Addr) {
	p.holder[address] = pod
	if p.last.Less(address) {
		p.last = address
	}
}

func (p *addressPool) release(pod types.UID) {
	for address, holder := range p.holder {
		if holder == pod {
			delete(p.holder, address)
		}
	}
}
