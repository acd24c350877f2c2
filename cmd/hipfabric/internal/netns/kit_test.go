//go:build linux

package netns

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listen opens a socket at a port's address.
func listen(p *Port) (c net.PacketConn, err error) {
	err = p.Host.Inside(func() (err error) {
		c, err = net.ListenPacket("udp", net.JoinHostPort(p.Addr().String(), "0"))
		return err
	})
	return c, err
}

// heard says whether a datagram from one port reaches another.
func heard(t testing.TB, from, to *Port) bool {
	t.Helper()
	receiver, err := listen(to)
	if err != nil {
		return false // the link-local address of a device that is down is no address
	}
	defer receiver.Close()
	sender, err := listen(from)
	if err != nil {
		return false
	}
	defer sender.Close()
	address := *receiver.LocalAddr().(*net.UDPAddr)
	if address.Zone != "" {
		address.Zone = from.Device
	}
	for range 20 { // the first wakes the neighbour's cache
		_, _ = sender.WriteTo([]byte("here"), &address)
		require.NoError(t, receiver.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		_, _, err := receiver.ReadFrom(make([]byte, 10))
		if err == nil {
			return true
		}
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}
	return false
}

func TestCablesCarryAndCanBeCut(t *testing.T) {
	hosts := Hosts(t, 2)
	for _, n := range []Net{{Number: 1, V4: true, MTU: 9000}, {Number: 2, V6: true}, {Number: 3}} {
		a, b := Cable(hosts[0], hosts[1], n)
		before := a.Sent()
		require.True(t, heard(t, a, b), "%+v", n)
		assert.Greater(t, a.Sent(), before)
		assert.True(t, heard(t, b, a), "%+v", n)

		a.Mute(b)
		assert.False(t, heard(t, a, b), "%+v: a muted port is heard", n)
		assert.True(t, heard(t, b, a), "%+v: the way back is cut too", n)
		a.Unmute(b)
		assert.True(t, heard(t, a, b), "%+v: still muted", n)

		b.Pull()
		assert.False(t, heard(t, a, b), "%+v: a pulled cable carries", n)
		assert.False(t, heard(t, b, a), "%+v: a pulled cable carries", n)
		b.Plug()
		assert.Eventually(t, func() bool { return heard(t, a, b) }, patience, time.Millisecond, "%+v: plugged in, it is dead", n)
	}
}

func TestASwitchJoinsAllAndAHostCanBePulled(t *testing.T) {
	ports := Switch(Hosts(t, 3), Net{V4: true, V6: true})
	for i := range ports {
		assert.True(t, heard(t, ports[i], ports[(i+1)%3]))
	}
	ports[2].Pull()
	assert.False(t, heard(t, ports[1], ports[2]))
	assert.True(t, heard(t, ports[0], ports[1]))
}

func TestHostsEndWithTheTest(t *testing.T) {
	name := ""
	t.Run("a test", func(t *testing.T) { name = Hosts(t, 1)[0].Name })
	require.NotEmpty(t, name)
	_, err := os.Stat(folder + name)
	assert.True(t, errors.Is(err, os.ErrNotExist), "%s is left: %v", name, err)
}
