package bootstrap

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two hosts and two cables: one is switched off while messages flow, is back, and then the other.
func TestMessagesFlowOnWhileEitherCableIsOff(t *testing.T) {
	h := cabled(t, 0, 1)
	s := h.join(apart(t, 2), "a", "b")
	for r := range s {
		s[r].Watch(waitsFor(1-r), nil)
	}
	eachHas(t, 2, s...)
	ctx := testContext(t)
	for _, off := range []struct{ host, link string }{{"a", "eth0"}, {"a", "eth1"}, {"b", "eth0"}, {"b", "eth1"}} {
		stop := make(chan struct{})
		counts := make([]int, 2)
		flow := func(r int) {
			buf := make([]byte, 100)
			for n := 0; ; n++ {
				last := false
				select {
				case <-stop:
					last = r == 0
				default:
				}
				text := fmt.Sprintf("%d from %d, last %v", n, r, last)
				if r == 0 {
					if !assert.NoError(t, s[0].Control().Send(ctx, 1, []byte(text))) {
						return
					}
				}
				got, _, err := s[r].Control().Recv(ctx, buf)
				if !assert.NoError(t, err, "rank %d", r) {
					return
				}
				if r == 1 {
					text = string(buf[:got])
					if !assert.NoError(t, s[1].Control().Send(ctx, 0, buf[:got])) {
						return
					}
				}
				assert.Equal(t, text, string(buf[:got]), "none is lost, doubled or moved")
				assert.Contains(t, string(buf[:got]), fmt.Sprintf("%d from 0", n))
				counts[r]++
				if last || string(buf[:got]) == fmt.Sprintf("%d from 0, last true", n) {
					return
				}
			}
		}
		ended := make(chan struct{})
		go func() { each(2, flow); close(ended) }()
		h.ip(off.host, "link set "+off.link+" down")
		eachHas(t, 1, s...)
		select {
		case <-s[0].settled:
			require.NoError(t, s[0].Cause())
		case <-time.After(3 * time.Second): // far beyond VerdictBusy
		}
		close(stop)
		<-ended
		assert.Greater(t, counts[0], 100)
		h.ip(off.host, "link set "+off.link+" up")
		eachHas(t, 2, s...)
	}
	assert.NoError(t, s[0].Cause())
	assert.NoError(t, s[1].Cause())
}

// The network that Rails leave to nothing else still carries the control connection, and so do they.
func TestRailsThatExcludeTheBaseCarryTheControlConnectionToo(t *testing.T) {
	h := cabled(t, 0, 1)
	all := apart(t, 2)
	all[0].Rails = []string{"^eth0"}
	s := h.join(all, "a", "b")
	assert.Equal(t, []string{"eth1 10.0.1.2-10.0.1.1"}, railTexts(s[1], 0))
	eachHas(t, 2, s...)
	for _, off := range []string{"eth0", "eth1"} {
		h.ip("b", "link set "+off+" down")
		talk(t, s, "one")
		eachHas(t, 1, s...)
		h.ip("b", "link set "+off+" up")
		eachHas(t, 2, s...)
	}
	assert.NoError(t, s[0].Cause())
}

// What comes to the base's address is no further way, whatever it says.
func TestAPathThatCrossesToAnotherAddressIsRefused(t *testing.T) {
	h := cabled(t, 0, 1)
	s := h.join(apart(t, 2), "a", "b")
	eachHas(t, 2, s...)
	for rail, address := range map[uint8]string{1: "10.0.0.1:2900", 0: "10.0.1.1:2900"} {
		h.on("b", func() {
			c, err := net.Dial("tcp", address)
			if !assert.NoError(t, err) {
				return
			}
			defer c.Close()
			hello := pathHello(s[0], 1000)
			hello.rail = rail
			x, _, err := dialHello(c, testSecret, hello, func() {})
			if !assert.NoError(t, err) {
				return
			}
			_, in, err := x.frames(s[0].ID())
			assert.NoError(t, err)
			_, _, err = readFrame(c, in)
			if rail == 0 {
				assert.NoError(t, err, "the base is wherever the route leads")
				return
			}
			assert.Error(t, err)
		})
	}
	eachHas(t, 2, s...)
	assert.NoError(t, s[0].Cause())
}
