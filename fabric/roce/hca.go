package roce

import (
	"context"
	"fmt"
	"sync"
)

// hca is an open device: its queue pairs complete in one place, which one goroutine at a time polls.
type hca struct {
	d      Driver
	index  int // among the transport's
	device string
	handle uintptr
	ends   map[uint32]*hop
	done   []Completion
	bad    *hop // the first one with a failed completion
	watch  sync.WaitGroup
	cancel context.CancelFunc
}

const batch = 64 // completions a poll takes

func openHCA(d Driver, device string, entries int) (*hca, error) {
	h := &hca{d: d, device: device, ends: map[uint32]*hop{}, done: make([]Completion, batch)}
	var err error
	h.handle, err = d.Open(device, entries)
	return h, err
}

// follow waits for events until close. lost is told of what they end.
func (h *hca) follow(lost func(text string)) {
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.watch.Go(func() {
		for {
			event, err := h.d.NextEvent(ctx, h.handle)
			if err != nil {
				return
			}
			if text := h.ending(&event); text != "" {
				lost(text)
			}
		}
	})
}

// ending says what an event ends, "" where that is nothing of ours.
func (h *hca) ending(e *Event) string {
	switch {
	case e.Fatal:
		return fmt.Sprintf("%s failed: %s", h.device, e.Text)
	case e.PortDown:
		return fmt.Sprintf("%s port %d is down: %s", h.device, e.Port, e.Text)
	case e.QPFatal:
		return fmt.Sprintf("queue pair %#x of %s failed: %s", e.QPN, h.device, e.Text)
	}
	return ""
}

// poll books all completions that are there, and says whether there were any.
func (h *hca) poll() (bool, error) {
	any := false
	for {
		n, err := h.d.Poll(h.handle, h.done)
		if err != nil {
			return any, fmt.Errorf("polling %s: %w", h.device, err)
		}
		for i := range h.done[:n] {
			if e := h.ends[h.done[i].QPN]; e != nil {
				e.completion(&h.done[i])
				if h.bad == nil && h.done[i].Failed {
					h.bad = e
				}
			}
		}
		any = any || n > 0
		if n < len(h.done) {
			return any, nil
		}
	}
}

// close ends the watch, and closes the device with all that is on it.
func (h *hca) close() error {
	if h.cancel != nil {
		h.cancel()
		h.watch.Wait()
	}
	if h.handle == 0 {
		return nil
	}
	return h.d.Close(h.handle)
}
