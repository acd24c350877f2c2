package ranks

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipes carry a rank's output to us. They are ours rather than os/exec's, since what a rank leaves behind keeps them
// open, and is ended between the rank's end and theirs.
type pipes struct {
	reads, writes []*os.File
	copying       sync.WaitGroup
}

// stream is what a process writes to: direct itself where that is a file, else a pipe to direct or to prefixed.
func (p *pipes) stream(direct io.Writer, prefixed *lines) (*os.File, error) {
	if f, ok := direct.(*os.File); ok {
		return f, nil
	}
	if direct != nil {
		return p.open(direct)
	}
	return p.open(prefixed)
}

// open gives the end that a process writes; what it writes goes to w until drain.
func (p *pipes) open(w io.Writer) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.reads, p.writes = append(p.reads, read), append(p.writes, write)
	p.copying.Go(func() { _, _ = io.Copy(w, read) })
	return write, nil
}

func (p *pipes) closeWrites() { closeAll(&p.writes) }
func (p *pipes) closeReads()  { closeAll(&p.reads); p.copying.Wait() }

func closeAll(files *[]*os.File) {
	for _, f := range *files {
		_ = f.Close()
	}
	*files = nil
}

// drain ends what is left of the group of the ended process pid and reads all that was written. Whoever left the group
// and still holds a pipe is read for grace and no longer.
func (p *pipes) drain(pid int, grace time.Duration) {
	finished := make(chan struct{})
	go func() { p.copying.Wait(); close(finished) }()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		left := signalGroup(pid, sig)
		select {
		case <-finished:
			if !left {
				p.closeReads()
				return
			}
		case <-time.After(grace):
		}
	}
	p.closeReads()
}
