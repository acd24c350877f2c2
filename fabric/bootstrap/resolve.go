package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
)

// resolve gives every address of host:port, each once, and applies the rule that no secret means loopback only.
func (c *Config) resolve(ctx context.Context, field, hostport string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fabric.Invalidf("%s is %q: %v", field, hostport, err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, fabric.Invalidf("%s is %q: %v", field, hostport, err)
	}
	ips, err := c.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(ips) == 0 {
		return nil, fabric.Invalidf("%s is %q: %q has no address; check the name, or give an IP address", field, hostport, host)
	}
	var addresses []netip.AddrPort
	seen := map[netip.Addr]bool{}
	for _, ip := range ips {
		ip = ip.Unmap()
		if seen[ip] {
			continue
		}
		seen[ip] = true
		if err := c.allowed(field, hostport, ip); err != nil {
			return nil, err
		}
		addresses = append(addresses, netip.AddrPortFrom(ip, uint16(port)))
	}
	return addresses, nil
}

// lookup gives no address and no error for a name that does not exist, and an error for a resolver in trouble.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return nil, nil
	}
	return ips, err
}

// allowed is the policy: beyond loopback a group needs a secret, or says aloud that it wants none.
func (c *Config) allowed(field, hostport string, ip netip.Addr) error {
	if len(c.Secret) > 0 || c.Insecure || ip.IsLoopback() {
		return nil
	}
	return fabric.Invalidf("%s is %q, and %v is beyond loopback, where a group needs a secret: make one with hipfabric keygen and give every rank "+
		"its file (HIPFABRIC_SECRET_FILE, Config.SecretFile), or set Insecure to let anyone who reaches the port join", field, hostport, ip)
}

// masterAddresses is where rank 0 can be reached now. A published address may not be there yet: then the error is no
// ErrInvalid, and worth another try.
func (c *Config) masterAddresses(ctx context.Context) ([]netip.AddrPort, error) {
	path, ok := strings.CutPrefix(c.Master, filePrefix)
	if !ok {
		return c.resolve(ctx, "Master", c.Master)
	}
	address, err := readPublished(path)
	if err != nil {
		return nil, err
	}
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s holds %q, which is no address", path, address)
	}
	if err := c.allowed("Master", c.Master+" -> "+address, a.Addr()); err != nil {
		return nil, err
	}
	return []netip.AddrPort{a}, nil
}

// listenAddresses is what this rank binds; local is the address of the connection that reached rank 0.
func (c *Config) listenAddresses(ctx context.Context, local netip.Addr) (field string, addresses []netip.AddrPort, err error) {
	switch {
	case len(c.Listen) > 0:
		for _, l := range c.Listen {
			a, err := c.resolve(ctx, "Listen", l)
			if err != nil {
				return "Listen", nil, err
			}
			addresses = append(addresses, a...)
		}
		return "Listen", addresses, nil
	case c.Rank > 0:
		return "Listen", []netip.AddrPort{netip.AddrPortFrom(local, 0)}, nil
	case strings.HasPrefix(c.Master, filePrefix):
		return "Master", []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)}, nil
	default:
		addresses, err = c.resolve(ctx, "Master", c.Master)
		return "Master", addresses, err
	}
}

// publish writes the address atomically: a reader sees all of it or none.
func publish(path, address string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fabric.Invalidf("Master file:%s cannot be written: %v", path, err)
	}
	_, err = f.WriteString(address + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fabric.Invalidf("Master file:%s cannot be written: %v", path, err)
	}
	return nil
}

func readPublished(path string) (string, error) {
	// Before the open, which would wait for the other end of a pipe.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fabric.Invalidf("Master file:%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxValue))
	return strings.TrimSpace(string(b)), err
}

// unpublish removes the file unless a later group has written its own address there.
func unpublish(path, address string) {
	if published, err := readPublished(path); err == nil && published == address {
		_ = os.Remove(path)
	}
}
