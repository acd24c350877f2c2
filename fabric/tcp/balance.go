package tcp

import "time"

const (
	// paceFor is how long what was seen of the lanes' pace holds.
	paceFor = time.Millisecond
	// paceAgain is how long a lane leaves parts to the others before it takes one, as a sample: its network may have mended.
	paceAgain = 500 * time.Millisecond
)

// pace is how fast a lane's network takes bytes, and how many it has yet to.
type pace struct {
	rate  float64 // bytes a second; 0 is not known
	queue float64 // bytes
	stuck bool    // what was sent again is not answered
}

// leaves says whether a lane should leave the next part, of n bytes, to the others, because they will have sent all that
// is left before it has sent this one: a slow lane must not be what the end of a call waits for.
func (f *peer) leaves(l *lane, n int) bool {
	if f.up < 2 {
		return false
	}
	now := time.Now()
	if now.Sub(f.pacedAt) > paceFor {
		f.pacedAt = now
		for _, o := range f.lanes {
			if o.conn != nil {
				h := o.conn.Health()
				o.pace = pace{float64(h.Rate), float64(h.Queued), h.Unanswered > 0}
			}
		}
	}
	leave := leavesPart(l, f.lanes, n, f.ToSend-f.Begun) && (l.pace.stuck || now.Sub(l.took) < paceAgain)
	if !leave {
		l.took = now
		l.pace.queue += float64(n)
	}
	return leave
}

// leavesPart decides by what is known of the lanes' pace; left are the bytes that no lane has taken, n among them.
func leavesPart(l *lane, lanes []*lane, n, left int) bool {
	if l.pace.rate == 0 {
		return false
	}
	soonest, rate, queue := -1.0, 0.0, 0.0
	for _, o := range lanes {
		if o == l || o.conn == nil {
			continue
		}
		if o.pace.rate == 0 {
			return false
		}
		rate += o.pace.rate
		queue += o.pace.queue
		if t := (o.pace.queue + float64(n)) / o.pace.rate; soonest < 0 || t < soonest {
			soonest = t
		}
	}
	others := max(soonest, (queue+float64(left))/rate)
	return (l.pace.queue+float64(n))/l.pace.rate > others
}
