package node

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestGPUsAreHandedOutOnceAndLowestFirst(t *testing.T) {
	pool := newGPUPool("node-0", 3)
	first, _ := pool.take("a", 1)
	second, _ := pool.take("b", 2)
	if !slices.Equal(first, []string{"GPU-node-0-0"}) || !slices.Equal(second, []string{"GPU-node-0-1", "GPU-node-0-2"}) {
		t.Fatalf("got %v and %v", first, second)
	}
}

func TestAPodThatDoesNotFitTakesNothing(t *testing.T) {
	pool := newGPUPool("node-0", 2)
	if _, err := pool.take("a", 1); err != nil {
		t.Fatal(err)
	}
	_, err := pool.take("b", 2)
	full := new(outOfGPUsError)
	if !errors.As(err, &full) || *full != (outOfGPUsError{requested: 2, used: 1, capacity: 2}) {
		t.Fatalf("got %v", err)
	}
	if got, _ := pool.take("c", 1); !slices.Equal(got, []string{"GPU-node-0-1"}) {
		t.Fatalf("the refused pod kept a GPU: %v was left", got)
	}
}

func TestReleasedGPUsAreFreeAndRestoredOnesAreNot(t *testing.T) {
	pool := newGPUPool("node-0", 2)
	pool.restore("a", []string{"GPU-node-0-0"})
	if got, _ := pool.take("b", 1); !slices.Equal(got, []string{"GPU-node-0-1"}) {
		t.Fatalf("a restored GPU was handed out: %v", got)
	}
	pool.release("a")
	if got, _ := pool.take("c", 1); !slices.Equal(got, []string{"GPU-node-0-0"}) {
		t.Fatalf("a released GPU was not handed out: %v", got)
	}
}

func TestAnAddressIsNotGivenAgainSoon(t *testing.T) {
	pool := newAddressPool(netip.MustParsePrefix("127.1.0.0/29"))
	first, _ := pool.take("a")
	pool.release("a")
	second, _ := pool.take("b")
	if first.String() != "127.1.0.1" || second.String() != "127.1.0.2" {
		t.Fatalf("got %s, then %s", first, second)
	}
}

func TestAnAddressPoolWrapsAroundAndSaysWhenItIsFull(t *testing.T) {
	pool := newAddressPool(netip.MustParsePrefix("127.1.0.0/30"))
	given := map[netip.Addr]bool{}
	for _, pod := range []types.UID{"a", "b", "c"} {
		address, err := pool.take(pod)
		if err != nil {
			t.Fatal(err)
		}
		given[address] = true
	}
	if len(given) != 3 {
		t.Fatalf("expected 3 different addresses, got %v", given)
	}
	if _, err := pool.take("d"); err == nil {
		t.Fatal("a block of four, whose first address names the block, gave a fourth address")
	}
}
