//go:build linux

package netns

import (
	"strings"
	"testing"
)

// RequireShaping skips the test where the kernel cannot lose, delay or slow packets (netem and tbf).
func RequireShaping(t testing.TB, h *Host) {
	t.Helper()
	for _, kind := range [][]string{{"netem", "delay", "1ms"}, {"tbf", "rate", "1gbit", "burst", "64kb", "latency", "50ms"}} {
		out, err := tool("tc", append([]string{"-n", h.Name, "qdisc", "replace", "dev", "lo", "root"}, kind...)...)
		if err != nil {
			t.Skipf("this kernel has no %s, so no link here can be made slow or lossy (make test-rxe has one): %v: %s", kind[0], err, out)
		}
	}
	if out, err := tool("tc", "-n", h.Name, "qdisc", "del", "dev", "lo", "root"); err != nil {
		t.Fatalf("tc qdisc del: %v: %s", err, out)
	}
}

// Shape puts a queueing discipline on all that this port sends, in place of the one before: "netem loss 1%",
// "tbf rate 50mbit burst 64kb latency 50ms".
func (p *Port) Shape(discipline string) {
	p.Host.t.Helper()
	args := append([]string{"-n", p.Host.Name, "qdisc", "replace", "dev", p.Device, "root"}, strings.Fields(discipline)...)
	if out, err := tool("tc", args...); err != nil {
		p.Host.t.Fatalf("%s: tc %s: %v: %s", p.Host.Name, strings.Join(args, " "), err, out)
	}
}

// Unshape removes what Shape put there.
func (p *Port) Unshape() {
	p.Host.t.Helper()
	if out, err := tool("tc", "-n", p.Host.Name, "qdisc", "del", "dev", p.Device, "root"); err != nil {
		p.Host.t.Fatalf("%s: tc qdisc del: %v: %s", p.Host.Name, err, out)
	}
}
