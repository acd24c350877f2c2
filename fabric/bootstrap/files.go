package bootstrap

import (
	"errors"
	"syscall"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

// What a rank opens beside its connections: listeners, pollers, a status socket, and on rank 0 the strangers that it lets
// knock at one time.
const (
	filesApart   = 24
	filesKnocked = maxPending
)

// filesNeeded is how many files a rank of a World above 1 opens: a data connection for each peer, and the star of control connections on
// rank 0. The further paths of a control connection, one a rail and peer, are not among them: they are opened while that many
// are free.
func (c *Config) filesNeeded() uint64 {
	peers := uint64(c.World - 1)
	if c.Rank == 0 {
		return filesApart + 2*peers + filesKnocked
	}
	return filesApart + peers + 1
}

// checkFiles refuses to begin what would fail half-way.
func (c *Config) checkFiles(used, limit uint64) error {
	if used+c.filesNeeded() > limit {
		return c.tooFewFiles(used, limit)
	}
	return nil
}

func (c *Config) tooFewFiles(used, limit uint64) error {
	need := c.filesNeeded()
	return fabric.Unsupportedf("rank %d of World %d needs %d file descriptors; the limit is %d and %d are in use; raise it with: ulimit -n %d",
		c.Rank, c.World, need, limit, used, used+need)
}

func tooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// filesOr says what is needed when files ran out in spite of checkFiles: the process opened others meanwhile.
func (c *Config) filesOr(err error) error {
	if !tooManyFiles(err) {
		return err
	}
	used, limit := sock.OpenFiles()
	return c.tooFewFiles(used, limit)
}
