//go:build !linux && !darwin

package link

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

type poller struct{ conns []*Conn }

func newPoller() (*poller, error) {
	return nil, fmt.Errorf("socket engine on %s: %w: linux or darwin is needed", runtime.GOOS, errors.ErrUnsupported)
}

func (p *poller) add(*Conn) error      { return errors.ErrUnsupported }
func (p *poller) remove(*Conn)         {}
func (p *poller) refresh() bool        { return false }
func (p *poller) park(time.Time) error { return errors.ErrUnsupported }
func (p *poller) spun()                {}
func (p *poller) wake()                {}
func (p *poller) close()               {}
