package ranks

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// rank is one process: the rank itself, or the ssh that stands for it.
type rank struct {
	number int
	prefix string
	cmd    *exec.Cmd
	input  []byte // ssh only: what its standard input begins with; lines that name signals follow

	out, err       *lines
	stdout, stderr io.Writer // instead of out and err, unprefixed

	mu      sync.Mutex  // guards the rest against signal
	orders  chan []byte // ssh only: to its standard input; closed by the last
	running bool
	barred  syscall.Signal // told to end by it before it had started
}

// run starts the process and waits for its end and for the end of its output.
func (r *rank) run(grace time.Duration) exit {
	// The kernel ends the child when the thread that started it ends (see attributes), so this one stays until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pipes, barred, err := r.start()
	if errors.Is(err, syscall.EMFILE) {
		err = fmt.Errorf("rank %d: %w; a rank takes a few, and ulimit -n says how many there may be", r.number, err)
	}
	if err != nil {
		return exit{rank: r, code: -1, err: err}
	}
	if barred != 0 {
		return exit{rank: r, code: 128 + int(barred)}
	}
	_ = r.cmd.Wait()
	r.mu.Lock()
	r.running = false
	r.order(nil)
	r.mu.Unlock()
	pipes.drain(r.cmd.Process.Pid, grace)
	r.out.end()
	r.err.end()
	return exit{rank: r, code: codeOf(r.cmd.ProcessState)}
}

// start starts the process, unless signal has barred it: then there are no pipes, only the signal.
func (r *rank) start() (p *pipes, barred syscall.Signal, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.barred != 0 {
		return nil, r.barred, nil
	}
	p = &pipes{}
	attributes(r.cmd)
	var stdin io.WriteCloser
	if r.input != nil {
		if stdin, err = r.cmd.StdinPipe(); err != nil {
			return nil, 0, err
		}
	}
	if r.cmd.Stdout, err = p.stream(r.stdout, r.out); err == nil {
		r.cmd.Stderr, err = p.stream(r.stderr, r.err)
	}
	if err != nil {
		p.closeWrites()
		p.closeReads()
		return nil, 0, err
	}
	err = r.cmd.Start()
	p.closeWrites()
	if err != nil {
		p.closeReads()
		return nil, 0, notFound(r.cmd.Args[0], err)
	}
	r.running = true
	if stdin != nil {
		r.orders = make(chan []byte, 16)
		go obey(stdin, r.input, r.orders)
	}
	return p, 0, nil
}

// obey writes input and then each order, and closes w after the last.
func obey(w io.WriteCloser, input []byte, orders <-chan []byte) {
	_, _ = w.Write(input)
	for order := range orders {
		_, _ = w.Write(order)
	}
	_ = w.Close()
}

// order hands a line to the far side without blocking; nil is the last one. r.mu is held.
func (r *rank) order(line []byte) {
	if r.orders == nil {
		return
	}
	if line == nil {
		close(r.orders)
		r.orders = nil
		return
	}
	select {
	case r.orders <- line:
	default: // the far side reads nothing: its ssh is killed in the end
	}
}

// signal reaches the process and all that it started. One that was told to end before it started never starts.
func (r *rank) signal(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.running:
		if sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGKILL {
			r.barred = sig
		}
	case r.orders != nil:
		r.order([]byte(signalName(sig) + "\n"))
		if sig == syscall.SIGKILL {
			r.order(nil) // a second one meets the ssh itself
		}
	default:
		signalGroup(r.cmd.Process.Pid, sig)
	}
}
