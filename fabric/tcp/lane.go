package tcp

import (
	"time"

	"github.com/hipfabric/hipfabric/fabric/internal/flow"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
	"github.com/hipfabric/hipfabric/fabric/internal/link"
)

// lane is one connection of a pair. A dead one is dialled anew, with the next generation.
type lane struct {
	index      int
	rail       *rail
	generation int
	died       int        // the last generation that did, -1 for none
	conn       *link.Conn // nil while the lane is down
	why        error      // it is down

	sending  sending
	arriving arriving
	pace     pace
	took     time.Time // a part, instead of leaving it to the others
	raised   time.Time // its connection
	probe    bool      // something must go out, so that its answer tells whether the lane lives
	held     bool      // its next frame is of a call that this rank has not begun
	announce uint64    // dead lanes, a bit each, that must be named on this lane before anything else goes out
}

// sending is what the frame that a lane sends is of.
type sending struct {
	span *flow.Span // nil for notices and for what is sent again from a copy
	part int
	kept bool // a copy stands in for it
}

// arriving is what the frame that a lane receives is of, once its payload has a place.
type arriving struct {
	span  *flow.Span // nil for notices and duplicates
	part  int
	early *early // a frame of a later call, put aside
}

// early is a frame of a call that this rank has not begun.
type early struct {
	header  [frame.Size]byte
	payload []byte
}

// kept is a copy of a small frame, until the peer says that it has it.
type kept struct {
	header  [frame.Size]byte
	order   uint32
	payload []byte
	lane    uint8 // 1 + the lane that took it, 0 when that lane is dead
}
