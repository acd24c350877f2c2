package doctor

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	reachTime = 5 * time.Second // for the peer to be found, however often that takes
	probeTime = 3 * time.Second // for one connection, to learn why it was not
)

// diagnose says why the peer could not be joined: from the join's error where something answered, from a connection of
// its own otherwise. An error that is none of the way's comes back.
func diagnose(ctx context.Context, peer string, began time.Time, joined error) (*NotReached, error) {
	n := &NotReached{Text: joined.Error(), Address: route(ctx, peer)}
	switch {
	case errors.Is(joined, fabric.ErrUnauthorized):
		n.Kind = Unauthorized
	case errors.Is(joined, fabric.ErrMismatch):
		n.Kind = Mismatch
	case !errors.Is(joined, fabric.ErrTimeout) && !errors.Is(joined, fabric.ErrPeerFailed):
		return nil, joined
	default:
		d := net.Dialer{Timeout: probeTime}
		c, err := d.DialContext(ctx, "tcp", peer)
		if err == nil {
			_ = c.Close()
			n.Kind = answered(n.Text)
			break
		}
		n.Kind, n.Text = unanswered(err), err.Error()
	}
	if table, err := os.ReadFile("/proc/net/arp"); err == nil {
		host, _, _ := net.SplitHostPort(peer)
		n.Neighbour = neighbour(string(table), host)
	}
	n.WaitedMs = time.Since(began).Milliseconds()
	return n, nil
}

// answered tells apart those that take the connection, by bootstrap's own words.
func answered(text string) string {
	switch {
	case strings.Contains(text, "something that is no hipfabric answered"):
		return Stranger
	case strings.Contains(text, "a group is running there"):
		return Busy
	}
	return Mute
}

func unanswered(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET):
		return Refused
	case errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EACCES):
		return Unreachable
	case errors.As(err, &timeout) && timeout.Timeout():
		return Silent
	}
	return Unreachable
}
