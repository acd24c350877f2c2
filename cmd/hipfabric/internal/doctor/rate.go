package doctor

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const blockBytes = 256 << 10

// half is what one end knows of a Rate: the sender the segments, the receiver the bytes.
type half struct {
	Bytes       int64 `json:"bytes"`
	Ns          int64 `json:"ns"` // from the first byte's arrival to the last's
	Segments    int64 `json:"segments"`
	Retransmits int64 `json:"retransmits"`
	MSS         int   `json:"mss"`
	PathMTU     int   `json:"path_mtu"`
	Stalled     bool  `json:"stalled"`
}

// send fills all connections for a time, and then waits until the other end has it all.
func send(ctx context.Context, conns []*net.TCPConn, d time.Duration) half {
	until := time.Now().Add(d)
	defer bound(ctx, until, conns...)()
	h := half{Segments: -1, Retransmits: -1}
	var wg sync.WaitGroup
	var stalled atomic.Bool
	for _, c := range conns {
		wg.Go(func() {
			block := make([]byte, blockBytes)
			for {
				if _, err := c.Write(block); err != nil {
					if !errors.Is(err, os.ErrDeadlineExceeded) {
						stalled.Store(true)
					}
					break
				}
			}
			if ctx.Err() != nil {
				return
			}
			_ = c.SetReadDeadline(until.Add(graceTime))
			if c.CloseWrite() != nil {
				stalled.Store(true)
			}
			if n, _ := c.Read(block[:1]); n != 1 { // the receiver's word that it has seen the end
				stalled.Store(true)
			}
		})
	}
	wg.Wait()
	for _, c := range conns {
		h.tell(c)
	}
	h.Stalled = stalled.Load()
	return h
}

// receive takes all that comes over the connections until each has ended.
func receive(ctx context.Context, conns []*net.TCPConn, d time.Duration) half {
	defer bound(ctx, time.Now().Add(d+graceTime), conns...)()
	var wg sync.WaitGroup
	var mu sync.Mutex
	h := half{Segments: -1, Retransmits: -1}
	var first, last time.Time
	for _, c := range conns {
		wg.Go(func() {
			n, from, to, err := drain(c)
			mu.Lock()
			defer mu.Unlock()
			h.Bytes += n
			if n > 0 && (first.IsZero() || from.Before(first)) {
				first = from
			}
			if to.After(last) {
				last = to
			}
			if err != nil {
				h.Stalled = true
			}
		})
	}
	wg.Wait()
	if h.Bytes > 0 {
		h.Ns = int64(last.Sub(first))
	}
	return h
}

// drain reads to the end and says so to the sender.
func drain(c *net.TCPConn) (n int64, first, last time.Time, err error) {
	block := make([]byte, blockBytes)
	for {
		m, err := c.Read(block)
		if m > 0 {
			last = time.Now()
			if n == 0 {
				first = last
			}
			n += int64(m)
		}
		if errors.Is(err, io.EOF) {
			_, err = c.Write(block[:1])
			return n, first, last, err
		}
		if err != nil {
			return n, first, last, err
		}
	}
}

func closeAll(conns []*net.TCPConn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

// rateOf joins what the two ends saw.
func rateOf(lanes int, direction string, sent, received half) Rate {
	r := Rate{Lanes: lanes, Direction: direction, Bytes: received.Bytes, Seconds: float64(received.Ns) / 1e9, Segments: sent.Segments,
		Retransmits: sent.Retransmits, MSS: sent.MSS, PathMTU: sent.PathMTU, Stalled: sent.Stalled || received.Stalled}
	if received.Ns > 0 {
		r.GBps = float64(received.Bytes) / float64(received.Ns)
		r.Gbps = 8 * r.GBps
	}
	return r
}
