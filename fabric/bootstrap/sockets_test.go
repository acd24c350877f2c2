//go:build linux || darwin

package bootstrap

import (
	"net"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

func TestBothEndsOfAControlConnectionAreTuned(t *testing.T) {
	s := group(t, configs(t, 3))
	for r := range s {
		checked := make(chan []error, 1)
		require.True(t, s[r].post(func() {
			var errs []error
			for _, k := range s[r].loop.links {
				errs = append(errs, sock.Check(k.paths[0].fd, sock.Control))
			}
			checked <- errs
		}))
		errs := <-checked
		assert.NotEmpty(t, errs)
		for _, err := range errs {
			assert.NoError(t, err, "rank %d", r)
		}
	}
}

func TestBothEndsOfADataConnectionAreTuned(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	each(2, func(r int) {
		open := []func() (*net.TCPConn, error){
			func() (*net.TCPConn, error) { return s[0].Accept(ctx, 1, fabric.Lane{Channel: "host"}) },
			func() (*net.TCPConn, error) { return s[1].Dial(ctx, 0, fabric.Lane{Channel: "host"}) },
		}[r]
		c, err := open()
		if !assert.NoError(t, err, "rank %d", r) {
			return
		}
		t.Cleanup(func() { c.Close() }) // not before the other end has it: what its dialer gave up is not accepted
		raw, err := c.SyscallConn()
		assert.NoError(t, err)
		assert.NoError(t, raw.Control(func(fd uintptr) {
			assert.NoError(t, sock.Check(int(fd), sock.Data), "rank %d", r)
		}))
	})
}
