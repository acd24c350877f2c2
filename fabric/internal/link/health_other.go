//go:build !linux

package link

// Health has nothing to say on this system.
func (c *Conn) Health() Health { return Health{} }
