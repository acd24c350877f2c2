package roce

import "time"

// tell is for a wait that lasts: kernels see that a peer is in another call of their target; of other calls the proxies tell each other.
func (p *mailProxy) tell(time.Time, time.Duration) error { return nil }
