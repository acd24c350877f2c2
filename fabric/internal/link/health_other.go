//go:build !linux

package link

type tcpInfo struct{}

// Health has nothing to say on this system.
func (c *Conn) Health() Health { return Health{} }
