// Gotest runs go test and counts: each package's line as go test prints it, the whole output of a test that failed, the reason of each
// that skipped, the lines in which a test that passed says "RESULT: ", and at the end how many passed, failed and skipped. Its exit code
// is go test's.
//
//	go run ./build/gotest [go test flags and packages] [-- another run's ...]
//
// Runs stand one after the other, separated by --; the first that fails is the last, and the final line sums them up.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	var total tally
	code := 0
	for _, args := range split(os.Args[1:], "--") {
		began := time.Now()
		t, err := run(args)
		total.add(t)
		fmt.Printf("go test %s: %s in %.0f s\n", strings.Join(args, " "), t, time.Since(began).Seconds())
		if err != nil {
			code = exitCode(err)
			break
		}
	}
	fmt.Println(total)
	os.Exit(code)
}

// run runs go test once with its output on ours.
func run(args []string) (tally, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return tally{}, err
	}
	if err := cmd.Start(); err != nil {
		return tally{}, err
	}
	t, readErr := report(out, os.Stdout)
	if readErr != nil {
		_, _ = io.Copy(io.Discard, out) // let go test end rather than block on a full pipe
	}
	return t, errors.Join(cmd.Wait(), readErr)
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "gotest:", err)
	return 1
}

// split cuts args at each sep; empty runs are dropped.
func split(args []string, sep string) [][]string {
	var all [][]string
	for len(args) > 0 {
		i := slices.Index(args, sep)
		if i < 0 {
			return append(all, args)
		}
		if i > 0 {
			all = append(all, args[:i])
		}
		args = args[i+1:]
	}
	return all
}

// lines reads r line by line, however long a line is.
func lines(r io.Reader) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadBytes('\n')
			if len(line) > 0 && !yield(line, nil) {
				return
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, err)
				}
				return
			}
		}
	}
}
