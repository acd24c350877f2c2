package bootstrap

import "time"

// poller waits for the control connections of a loop. wake, which any goroutine may call until close, ends a wait.
type poller interface {
	// wait sets ready on the paths that can be read or have ended. A negative timeout waits for ever.
	wait(links []*link, timeout time.Duration)
	wake()
	close()
}

// solo is the poller of world 1, which has no connections.
type solo chan struct{}

func newSolo() solo { return make(solo, 1) }

func (s solo) wait(_ []*link, timeout time.Duration) {
	if timeout < 0 {
		<-s
		return
	}
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-s:
	case <-t.C:
	}
}

func (s solo) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}

func (s solo) close() {}
