package stage

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// Gate is how an engine's stream and the proxy meet.
type Gate uint8

const (
	// Auto is Words.
	Auto Gate = iota
	// Words: the stream writes a word and waits on another. Nothing else of a call is on it.
	Words
	// Kernels: the stream runs two kernels a part, which copy and wait. For devices whose streams cannot wait on values, and
	// for captured graphs. Calls on several streams must be ordered by the engine, as by events.
	Kernels
)

func (g Gate) String() string {
	switch g {
	case Auto:
		return "auto"
	case Words:
		return "words"
	case Kernels:
		return "kernels"
	default:
		return fmt.Sprintf("gate(%d)", uint8(g))
	}
}

// gate is what differs between the two. The proxy calls next, learned, passed and busy.
type gate interface {
	// queue puts a checked call on the stream.
	queue(stream uintptr, c *fabric.Call) error
	// capture prepares a plan.
	capture(stream uintptr) (fabric.PlanTransport, error)
	// next fills in the job that comes after the last one begun; false while no stream has reached it.
	next(j *job) bool
	// learned is told once a job's lengths have come from the device.
	learned(j *job)
	// passed is told of each job that has ended well, in order, before its done word is stored.
	passed(j *job)
	// busy says whether a ready word may come that nobody announces with a wake.
	busy() bool
	// free gives back the gate's own memory.
	free() error
}
