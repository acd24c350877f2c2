package hipfabric

import (
	"errors"

	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
)

// proxyLease is one group's share of the proxy of a device.
type proxyLease struct {
	*stage.Proxy
	family *family
	device string
	groups int           // that share it; family.mu guards it
	made   chan struct{} // closed once there is the proxy, or err
	err    error
}

// lease gives the device's proxy, the same one to all groups of a family. The driver may hold it up.
func (f *family) lease(d *hipgo.Device) (*proxyLease, error) {
	f.mu.Lock()
	l := f.proxies[d.String()]
	first := l == nil
	if first {
		l = &proxyLease{family: f, device: d.String(), made: make(chan struct{})}
		f.proxies[l.device] = l
	}
	l.groups++
	f.mu.Unlock()
	if first { // not under the mutex: all groups' heartbeats take it
		l.Proxy, l.err = f.newProxy(d.Seam())
		close(l.made)
	}
	<-l.made
	if l.err != nil {
		return nil, errors.Join(l.err, l.release())
	}
	return l, nil
}

// release gives the share back; the last one ends the proxy, or leaves that to a group whose copies may still land.
func (l *proxyLease) release() error {
	if !l.leave() || l.err != nil {
		return nil
	}
	return l.Close()
}

// leave says whether the share was the last one; then the next group gets a proxy of its own.
func (l *proxyLease) leave() bool {
	l.family.mu.Lock()
	defer l.family.mu.Unlock()
	l.groups--
	if l.groups > 0 {
		return false
	}
	delete(l.family.proxies, l.device)
	return true
}
