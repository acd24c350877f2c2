package link

import "time"

// Health is what the kernel knows of a connection.
type Health struct {
	Known         bool          // this system says
	Unanswered    int           // retransmissions in a row without an answer
	Silent        time.Duration // since the peer's kernel last acknowledged something
	Retransmitted int           // segments, in all
	RoundTrip     time.Duration // smoothed
	Rate          int           // bytes a second that arrived of late, while there was enough to send; 0 is not known
	Queued        int           // bytes sent and not acknowledged, or not sent yet
}
