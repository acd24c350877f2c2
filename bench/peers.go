package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// oneRun bounds a single measurement by any program.
const oneRun = 2 * time.Minute

//go:embed floor/floor.c
var floorSource []byte

//go:embed openmpi/openmpi.c
var openmpiSource []byte

// floor is the raw spinning exchange.
type floor struct {
	window, iters int
	sizes         []int
	program       string
}

func (f *floor) prepare(ctx context.Context, dir string) (err error) {
	f.program, err = compile(ctx, dir, "floor", floorSource, "gcc", "gcc libc6-dev")
	return err
}

func (f *floor) measure(ctx context.Context) (results, error) {
	out, err := output(ctx, f.program, append([]string{strconv.Itoa(f.window), strconv.Itoa(f.iters)}, decimal(f.sizes)...)...)
	if err != nil {
		return nil, err
	}
	return parseLines(out)
}

// openmpi is MPI over loopback TCP, as on the wire between hosts.
type openmpi struct {
	world, iters int
	ops          []string
	sizes        []int
	program      string
}

func (m *openmpi) prepare(ctx context.Context, dir string) (err error) {
	const packages = "openmpi-bin libopenmpi-dev"
	if _, err := exec.LookPath("mpirun"); err != nil {
		return missing("mpirun", packages)
	}
	m.program, err = compile(ctx, dir, "openmpi", openmpiSource, "mpicc", packages)
	return err
}

func (m *openmpi) measure(ctx context.Context) (results, error) {
	out, err := output(ctx, "mpirun", append([]string{"--allow-run-as-root", "--oversubscribe", "-n", strconv.Itoa(m.world),
		"--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo",
		m.program, strconv.Itoa(m.iters), strings.Join(m.ops, ",")}, decimal(m.sizes)...)...)
	if err != nil {
		return nil, err
	}
	return parseLines(out)
}

// iperf3 is the rate of one stream in one direction.
type iperf3 struct{}

// bulk is iperf3's only key.
var bulk = key{op: "stream"}

func (iperf3) prepare(context.Context, string) error {
	if _, err := exec.LookPath("iperf3"); err != nil {
		return missing("iperf3", "iperf3")
	}
	return nil
}

func (iperf3) measure(ctx context.Context) (results, error) {
	ctx, cancel := context.WithTimeout(ctx, oneRun)
	defer cancel()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	server := exec.CommandContext(ctx, "iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", port, "--forceflush")
	said, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	ready := bufio.NewReader(said)
	for {
		line, err := ready.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("iperf3 -s ended before it listened: %w", err)
		}
		if strings.Contains(line, "listening") {
			break
		}
	}
	out, err := output(ctx, "iperf3", "-c", "127.0.0.1", "-p", port, "-t", "2", "-J")
	if err != nil {
		cancel() // nobody will come to the server
		_ = server.Wait()
		return nil, err
	}
	_, _ = ready.WriteTo(io.Discard)
	if err := server.Wait(); err != nil {
		return nil, fmt.Errorf("iperf3 -s: %w", err)
	}
	return parseIperf3(out)
}

func parseIperf3(text []byte) (results, error) {
	var report struct {
		End struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("iperf3's report: %w", err)
	}
	if report.End.Received.BitsPerSecond <= 0 {
		return nil, errors.New("iperf3's report has no end.sum_received.bits_per_second")
	}
	return results{bulk: report.End.Received.BitsPerSecond / 8e9}, nil
}

// parseLines reads OP BYTES P50 P90 lines.
func parseLines(text []byte) (results, error) {
	got := results{}
	for line := range bytes.Lines(text) {
		var k key
		var p50, p90 float64
		if _, err := fmt.Sscanf(string(line), "%s %d %f %f", &k.op, &k.bytes, &p50, &p90); err != nil {
			return nil, fmt.Errorf("expected OP BYTES P50 P90, got %q", line)
		}
		got[k] = p50
	}
	return got, nil
}

func missing(program, packages string) error {
	return fmt.Errorf("%s is not installed: apt-get install %s", program, packages)
}

// compile builds one C source into dir.
func compile(ctx context.Context, dir, name string, source []byte, compiler, packages string) (string, error) {
	if _, err := exec.LookPath(compiler); err != nil {
		return "", missing(compiler, packages)
	}
	file, program := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", err
	}
	_, err := output(ctx, compiler, "-O2", "-o", program, file)
	return program, err
}

// freePort is a port that nobody listened on a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
