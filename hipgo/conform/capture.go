package conform

import (
	"errors"
	"fmt"

	"github.com/hipfabric/hipfabric/hipgo"
)

// captured runs f on a stream that is being captured, and ends the capture whatever f says.
func (p *probe) captured(s stream, mode hipgo.CaptureMode, f func() error) (*hipgo.Graph, error) {
	if err := s.BeginCapture(mode); err != nil {
		return nil, err
	}
	err := f()
	graph, endErr := s.EndCapture()
	if graph != nil {
		p.closeLater(graph)
	}
	if err != nil {
		return graph, err
	}
	return graph, endErr
}

func (p *probe) instantiate(g *hipgo.Graph) (*hipgo.Exec, error) {
	x, err := g.Instantiate()
	if err == nil {
		p.closeLater(x)
	}
	return x, err
}

func captureStatus(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	var during hipgo.CaptureStatus
	before, err := p.calls.capturing(s.Stream)
	if err != nil {
		return "", err
	}
	if _, err := p.captured(s, hipgo.CaptureThreadLocal, func() (err error) {
		during, err = p.calls.capturing(s.Stream)
		return err
	}); err != nil {
		return "", err
	}
	after, err := p.calls.capturing(s.Stream)
	if err != nil {
		return "", err
	}
	if before != hipgo.CaptureNone || during != hipgo.CaptureActive || after != hipgo.CaptureNone {
		return "", fmt.Errorf("the status before, during and after a capture is %d, %d, %d, not 0, 1, 0", before, during, after)
	}
	return "a stream says whether it is being captured", nil
}

func code(err error) string {
	if e := (*hipgo.Error)(nil); errors.As(err, &e) {
		return fmt.Sprintf("code %d", e.Code)
	}
	return err.Error()
}

// captureQuery: polling a capturing stream is refused; it says what that does to the capture.
func captureQuery(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	var refused error
	var ready bool
	var after hipgo.CaptureStatus
	_, end := p.captured(s, hipgo.CaptureThreadLocal, func() (err error) {
		ready, refused = p.calls.query(s.Stream)
		after, err = p.calls.capturing(s.Stream)
		return err
	})
	if refused == nil {
		return "", fmt.Errorf("a query of a capturing stream says %v instead of refusing: an engine takes that for work done", ready)
	}
	if after == hipgo.CaptureInvalidated || end != nil {
		return fmt.Sprintf("a query of a capturing stream is refused (%s) and ends the capture: ask only Capturing", code(refused)), nil
	}
	return fmt.Sprintf("a query of a capturing stream is refused (%s); the capture goes on", code(refused)), nil
}

// captureWriteValue: a write on a capturing stream must be refused or recorded. One that runs at once is lost to the graph.
func captureWriteValue(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	w := p.word()
	var refused error
	atOnce := false
	g, end := p.captured(s, hipgo.CaptureThreadLocal, func() error {
		if refused = p.write(s, w, 7); refused != nil {
			return nil
		}
		atOnce, err = p.poll(p.o.Settle, func() (bool, error) { return w.load() == 7, nil })
		return err
	})
	switch {
	case refused != nil:
		return fmt.Sprintf("a write on a capturing stream is refused (%s)", code(refused)), nil
	case atOnce:
		return "", known(reportCapture, "a write on a capturing stream runs at once and is not in the graph: ask Capturing first")
	case end != nil:
		return "", end
	}
	x, err := p.instantiate(g)
	if err != nil {
		return "", err
	}
	for range 2 {
		w.store(0)
		if err := errors.Join(x.Launch(s.Stream), p.reaches(w, 7), p.drained(s)); err != nil {
			return "", fmt.Errorf("a write on a capturing stream neither ran, nor does it in the graph's replay: %w", err)
		}
	}
	return "a write on a capturing stream is recorded, and runs in each replay", nil
}

// captureWaitValue is the same question of a wait.
func captureWaitValue(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	w := p.word()
	var refused error
	g, end := p.captured(s, hipgo.CaptureThreadLocal, func() error {
		refused = p.park(s, w, 1)
		return nil
	})
	if refused != nil {
		return fmt.Sprintf("a wait on a capturing stream is refused (%s)", code(refused)), nil
	}
	if end != nil {
		return "", end
	}
	ended, err := p.poll(p.o.Settle, s.Query)
	if err != nil {
		return "", err
	}
	if !ended {
		w.store(1)
		if err := p.drained(s); err != nil {
			return "", err
		}
		return "", known(reportCapture, "a wait on a capturing stream runs at once and parks it, and is not in the graph: ask Capturing first")
	}
	x, err := p.instantiate(g)
	if err != nil {
		return "", err
	}
	if err := errors.Join(x.Launch(s.Stream), p.stays(s)); err != nil {
		return "", fmt.Errorf("a wait on a capturing stream neither ran, nor does it in the graph's replay: %w", err)
	}
	w.store(1)
	return "a wait on a capturing stream is recorded, and holds in the replay until a host store", p.drained(s)
}

// captureReplay: copies in a graph move the bytes of the time of the replay.
func captureReplay(p *probe) (string, error) {
	const n, replays = 4096, 6
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	src, dst, dev, err := p.trio(n)
	if err != nil {
		return "", err
	}
	fill(src.Bytes(), 1)
	g, err := p.captured(s, hipgo.CaptureThreadLocal, func() error {
		return errors.Join(p.copy(s, dev.Ptr(), src.Ptr(), n), p.copy(s, dst.Ptr(), dev.Ptr(), n))
	})
	if err != nil {
		return "", err
	}
	if err := p.drained(s); err != nil {
		return "", err
	}
	if mismatch(dst.Bytes(), src.Bytes()) < 0 {
		return "", errors.New("copies on a capturing stream ran at once")
	}
	x, err := p.instantiate(g)
	if err != nil {
		return "", err
	}
	for i := range uint64(replays) {
		fill(src.Bytes(), 10+i)
		if err := errors.Join(x.Launch(s.Stream), p.drained(s)); err != nil {
			return "", err
		}
		if at := mismatch(dst.Bytes(), src.Bytes()); at >= 0 {
			return "", fmt.Errorf("replay %d of %d did not copy anew: byte %d", i+1, replays, at)
		}
	}
	return fmt.Sprintf("%d replays copied what was there at the time of each", replays), nil
}

// captureBeside: what hipfabric does on other threads leaves an engine's global capture valid.
func captureBeside(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	other, err := p.own()
	if err != nil {
		return "", err
	}
	src, dst, dev, err := p.trio(4096)
	if err != nil {
		return "", err
	}
	fill(src.Bytes(), 3)
	var beside error
	_, err = p.captured(s, hipgo.CaptureGlobal, func() error {
		done := make(chan error, 1)
		go func() {
			e, err := p.event()
			_, hostErr := p.hostBytes(4096)
			memory, deviceErr := p.d.Malloc(4096)
			if deviceErr == nil {
				deviceErr = memory.Close()
			}
			done <- errors.Join(err, hostErr, deviceErr,
				p.copy(other, dev.Ptr(), src.Ptr(), 4096), p.copy(other, dst.Ptr(), dev.Ptr(), 4096),
				e.Record(other.Stream), p.passed(e), p.drained(other))
		}()
		beside = <-done
		return nil
	})
	switch {
	case beside != nil:
		return "", fmt.Errorf("memory, copies and queries on another thread are refused while a stream is captured in Global mode: %w", beside)
	case err != nil:
		return "", fmt.Errorf("memory, copies and queries on another thread ended a Global capture: %w", err)
	}
	return "memory, copies, events and queries on another thread left a Global capture valid", nil
}
