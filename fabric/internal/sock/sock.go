package sock

import (
	"fmt"
	"time"
)

// Use is what a connection is for; it decides its options.
type Use uint8

const (
	// Control connections carry the heartbeat: TCP_USER_TIMEOUT ends one whose bytes stay unacknowledged.
	Control Use = iota + 1
	// Data connections have none: it would end a healthy group whose receiver is busy elsewhere.
	Data
)

// The keepalive of both uses: a vanished host is found even when nothing is sent.
const (
	KeepIdle     = 30 * time.Second
	KeepInterval = 10 * time.Second
	KeepCount    = 6
	UserTimeout  = 30 * time.Second // Control only
)

// Options bound what a data socket holds; zero leaves it to the system.
type Options struct {
	Buffer int // bytes, of each direction
	Unsent int // bytes taken and not yet sent; linux
}

// ClampedError says that the system allows less than was asked for.
type ClampedError struct {
	Option     string
	Asked, Got int
}

func (e *ClampedError) Error() string {
	return fmt.Sprintf("%s of %d is more than the %d that the system allows", e.Option, e.Asked, e.Got)
}
