package ranks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Grace is how long a rank that was told to end may take before it is killed.
const Grace = 5 * time.Second

// lastWords is how long the others have to end by themselves when one has failed: to return its failure and log it.
const lastWords = 500 * time.Millisecond

// farGrace is what the far side of an ssh needs to clean up after the SIGKILL it was told of.
const farGrace = 5 * time.Second

// Job is the processes of a group.
type Job struct {
	ranks []*rank
	dir   string // private; removed by Close
}

// Options say how a Job runs.
type Options struct {
	Stdout, Stderr io.Writer // prefixed lines of all ranks
	// Direct gives rank 0's output as it is, for a command whose rank 0 speaks for all.
	Direct     bool
	Grace      time.Duration    // 0 is Grace
	Signals    <-chan os.Signal // forwarded to every rank; nil: none
	Expendable int              // this rank's end is no failure and ends nobody; -1: none
}

// Close removes the Job's folder. It is idempotent.
func (j *Job) Close() error {
	if j.dir == "" {
		return nil
	}
	// By name, the secret first: to list a folder takes a descriptor, which may be what was lacking.
	_ = os.Remove(filepath.Join(j.dir, secretName))
	_ = os.Remove(filepath.Join(j.dir, masterName))
	for _, r := range j.ranks {
		_ = os.Remove(socketPath(j.dir, r.number))
	}
	if err := os.Remove(j.dir); err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return os.RemoveAll(j.dir)
}

// exit is how a rank ended.
type exit struct {
	rank *rank
	code int
	err  error // it could not even start
}

// Run starts every rank and returns when the last has ended, with the code of the first that failed: 128 and the number
// of the signal for one that a signal ended. When one fails the others get SIGTERM, a moment later, since most end by
// themselves, and SIGKILL after Grace.
func (j *Job) Run(o Options) (int, error) {
	if o.Grace == 0 {
		o.Grace = Grace
	}
	exits := make(chan exit, len(j.ranks))
	s := &supervisor{job: j, o: o, live: len(j.ranks)}
	out, notes := &sink{w: o.Stdout}, &sink{w: o.Stderr}
	s.notes = &lines{to: notes, prefix: "hipfabric: "}
	for _, r := range j.ranks {
		r.out, r.err = &lines{to: out, prefix: r.prefix}, &lines{to: notes, prefix: r.prefix}
		if o.Direct && r.number == 0 {
			r.stdout, r.stderr = o.Stdout, o.Stderr
		}
		go func() { exits <- r.run(o.Grace) }()
	}
	code, err := s.watch(exits)
	if lost := out.failure(); lost != nil && code == 0 && err == nil {
		err = fmt.Errorf("the ranks' output could not be written: %w", lost)
	}
	return code, err
}

// supervisor is the one goroutine that decides for all ranks.
type supervisor struct {
	job    *Job
	o      Options
	live   int
	code   int
	failed error
	ending bool
	term   <-chan time.Time
	kill   <-chan time.Time
	asked  int // how often somebody asked us to end
	notes  *lines
}

func (s *supervisor) watch(exits <-chan exit) (int, error) {
	for s.live > 0 {
		select {
		case e := <-exits:
			s.live--
			s.ended(e)
		case <-s.term:
			s.kill = time.After(s.o.Grace)
			s.all(syscall.SIGTERM)
		case <-s.kill:
			s.all(syscall.SIGKILL)
			s.kill = time.After(s.o.Grace + farGrace) // then an ssh that hangs
		case sig := <-s.o.Signals:
			s.forward(sig)
		}
	}
	return s.code, s.failed
}

func (s *supervisor) ended(e exit) {
	if e.rank.number == s.o.Expendable && e.err == nil {
		return
	}
	if s.failed == nil && e.err != nil && s.code == 0 {
		s.failed = e.err
	}
	if s.code == 0 && e.code != 0 {
		s.code = e.code
		if e.err == nil && s.asked == 0 {
			_, _ = fmt.Fprintf(s.notes, "rank %d %s%s\n", e.rank.number, ending(e), s.others())
		}
		s.end()
	}
}

// ending says how a rank failed.
func ending(e exit) string {
	switch {
	case e.code > 128 && e.rank.input == nil:
		return fmt.Sprintf("was ended by signal %d (%v)", e.code-128, syscall.Signal(e.code-128))
	case e.code == 255 && e.rank.input != nil:
		return "ended with code 255, which is ssh's own for a host that it cannot reach"
	}
	return fmt.Sprintf("ended with code %d", e.code)
}

func (s *supervisor) others() string {
	if s.live == 0 {
		return ""
	}
	return "; ending the others"
}

// end lets the clock run after which every rank is asked to end.
func (s *supervisor) end() {
	if !s.ending {
		s.ending = true
		s.term = time.After(lastWords)
	}
}

// forward hands a signal on. Whoever asks a third time to end does not want to wait.
func (s *supervisor) forward(sig os.Signal) {
	switch number := sig.(syscall.Signal); number {
	case syscall.SIGPIPE: // nobody reads our output any more
		if s.code == 0 {
			s.code = 128 + int(number)
		}
		s.end()
	case syscall.SIGINT, syscall.SIGTERM:
		if s.asked++; s.asked >= 3 {
			number = syscall.SIGKILL
		}
		s.all(number)
	default:
		s.all(number)
	}
}

func (s *supervisor) all(sig syscall.Signal) {
	for _, r := range s.job.ranks {
		r.signal(sig)
	}
}

// codeOf is a shell's code for how a process ended.
func codeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// notFound says which program could not be started and what may be done.
func notFound(name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is neither a file nor in PATH: check its name, and write the command after -- : %w", name, err)
	}
	if errors.Is(err, os.ErrPermission) && !strings.Contains(name, "/") {
		return fmt.Errorf("%s may not be executed: %w", name, err)
	}
	return fmt.Errorf("start %s: %w", name, err)
}
