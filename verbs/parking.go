package verbs

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// parking waits on a descriptor of the table's. A nil one cannot: its table has none.
type parking struct {
	file *os.File // a duplicate: the table closes its own
	raw  syscall.RawConn
	turn chan struct{} // full while one waits
}

// park gives nil of a table without descriptors.
func park(fd int, name string) (*parking, error) {
	if fd < 0 {
		return nil, nil
	}
	file, err := duplicate(fd, name)
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &parking{file: file, raw: raw, turn: make(chan struct{}, 1)}, nil
}

// wait calls try now and whenever the descriptor is readable, until it is done or fails, ctx ends, or close.
func (p *parking) wait(ctx context.Context, try func() (done bool, err error)) error {
	if p == nil {
		done, err := try()
		if err == nil && !done {
			err = &UnsupportedError{Device: "this table", Feature: "it has no descriptor to wait on", Need: "poll instead"}
		}
		return err
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.turn }()
	if err := ctx.Err(); err != nil {
		return err
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = p.file.SetReadDeadline(time.Unix(1, 0)) // fails on a closed file, which ends the wait too
		close(fired)
	})
	defer func() {
		if !stop() {
			<-fired
			_ = p.file.SetReadDeadline(time.Time{})
		}
	}()
	var failed error
	err := p.raw.Read(func(uintptr) bool {
		done, err := try()
		failed = err
		return done || err != nil
	})
	switch {
	case failed != nil:
		return failed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ctx.Err()
	}
	return err
}

// close lets who waits return, and returns when it has: its try must refuse from then on, and no lock that it takes may be held. A second
// close does nothing.
func (p *parking) close() {
	if p != nil {
		_ = p.file.Close() // the table's own descriptor is what counts
	}
}
