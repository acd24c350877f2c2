package hipfabric

import (
	"runtime"
	"time"
)

// spinWhenShort is the most that a wait spins when another rank needs the core: it yields meanwhile, so this bounds what
// is lost when the other has nothing to do.
const spinWhenShort = 200 * time.Microsecond

// spinPolicy says how waits behave: for how long they spin (0 is the path's default) and whether they give up their
// core in between.
type spinPolicy struct {
	spinFor time.Duration
	yield   bool
	cores   int
}

// usableCores respects the affinity mask (NumCPU) and the cgroup's quota (GOMAXPROCS).
func usableCores() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// spin lowers the configured spin when the waits that may spin on this host at once, one a group of each rank, are more
// than its cores: a spinning rank would keep the one that it waits for from running.
func spin(configured time.Duration, waits, cores int) spinPolicy {
	if waits <= cores {
		return spinPolicy{spinFor: configured, cores: cores}
	}
	lowered := spinWhenShort
	if configured > 0 {
		lowered = min(configured, spinWhenShort)
	}
	return spinPolicy{spinFor: lowered, yield: true, cores: cores}
}

// notes say in the log what was lowered, and why.
func (p spinPolicy) notes() []any {
	if !p.yield {
		return nil
	}
	return []any{keySpin, "lowered to " + p.spinFor.String() + ", yielding: more waits may spin here than there are cores", keyCores, p.cores}
}
