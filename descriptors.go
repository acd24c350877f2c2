package hipfabric

import "github.com/hipfabric/hipfabric/fabric"

// What a rank opens beside its connections: listeners, pollers, the status socket, and on rank 0 the strangers that it
// lets knock at one time.
const (
	descriptorsApart   = 24
	descriptorsKnocked = 64
)

// descriptorsNeeded is how many files a rank opens: a data connection for each peer, and the star of control
// connections on rank 0.
func descriptorsNeeded(c *Config) uint64 {
	peers := uint64(c.World - 1)
	if peers == 0 {
		return descriptorsApart
	}
	if c.Rank == 0 {
		return descriptorsApart + 2*peers + descriptorsKnocked
	}
	return descriptorsApart + peers + 1
}

// checkDescriptors refuses to begin what would fail half-way.
func checkDescriptors(c *Config, used, limit uint64) error {
	if need := descriptorsNeeded(c); used+need > limit {
		return fabric.Unsupportedf("rank %d of World %d needs %d file descriptors; the limit is %d and %d are in use; raise it with: ulimit -n %d",
			c.Rank, c.World, need, limit, used, used+need)
	}
	return nil
}
