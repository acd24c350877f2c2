package hipfabric

import (
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
)

// proxyLease is one group's share of the proxy of a device.
type proxyLease struct {
	*stage.Proxy
	family *family
	device string
	groups int // that share it; family.mu guards it
}

// lease gives the device's proxy, the same one to all groups of a family.
func (f *family) lease(d *hipgo.Device) (*proxyLease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.proxies[d.String()]; l != nil {
		l.groups++
		return l, nil
	}
	p, err := stage.NewProxy(d.Seam())
	if err != nil {
		return nil, err
	}
	l := &proxyLease{Proxy: p, family: f, device: d.String(), groups: 1}
	f.proxies[l.device] = l
	return l, nil
}

// release gives the share back; the last one ends the proxy.
func (l *proxyLease) release() error {
	l.family.mu.Lock()
	defer l.family.mu.Unlock()
	if l.groups--; l.groups > 0 {
		return nil
	}
	delete(l.family.proxies, l.device)
	return l.Close()
}
