package ranks

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/launch"
)

// FolderPattern names the folders that Jobs make in the folder for temporary files, and SocketPattern the status sockets
// of the ranks in one.
const (
	FolderPattern = "hipfabric-*"
	SocketPattern = "status-*.sock"
)

// maxSocketPath leaves room for the name under which a socket is bound before it is renamed.
const maxSocketPath = 90

// Local makes the Job of world ranks on this host, each running argv with this process's environment, the variables that
// it takes to be a rank instead of those of this process, and extra, as Named takes them. They meet through a file in the Job's folder, with a fresh secret.
func Local(world int, argv, extra []string) (*Job, error) {
	if err := check(world, argv); err != nil {
		return nil, err
	}
	extra, err := Named(extra)
	if err != nil {
		return nil, err
	}
	secret, err := NewSecret()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", FolderPattern)
	if err != nil {
		return nil, fmt.Errorf("make a folder for the ranks to meet in: %w", err)
	}
	j := &Job{dir: dir}
	file := filepath.Join(dir, secretName)
	if err := os.WriteFile(file, secret, 0o600); err != nil {
		return nil, fmt.Errorf("write the secret: %w", errors.Join(err, j.Close()))
	}
	for n := range world {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = slices.Concat(inherited(), extra, variables(n, world, n, "file:"+filepath.Join(dir, masterName)),
			[]string{launch.SecretFile + "=" + file}, statusSocket(dir, n))
		j.ranks = append(j.ranks, &rank{number: n, prefix: prefix(n, world), cmd: cmd})
	}
	return j, nil
}

func check(world int, argv []string) error {
	if world < 1 || world > fabric.MaxWorld {
		return fabric.Invalidf("%d ranks are outside 1..%d", world, fabric.MaxWorld)
	}
	if len(argv) == 0 {
		return fabric.Invalidf("no command to run; write it after --")
	}
	return supported()
}

// NewSecret draws 32 random bytes and writes them as a line of hexadecimal digits, the form of a secret file.
func NewSecret() ([]byte, error) {
	var raw [32]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return nil, fmt.Errorf("draw a secret: %w", err)
	}
	return append(hex.AppendEncode(nil, raw[:]), '\n'), nil
}

// What lies in a Job's folder.
const (
	secretName = "secret"
	masterName = "master"
)

func socketPath(dir string, n int) string {
	return filepath.Join(dir, fmt.Sprintf("status-%d.sock", n))
}

// statusSocket names the socket that rank n serves its status on, where the system can bind a path of that length.
func statusSocket(dir string, n int) []string {
	path := socketPath(dir, n)
	if len(path) > maxSocketPath {
		return nil
	}
	return []string{launch.Status + "=" + path}
}

func variables(rank, world, local int, master string) []string {
	return []string{
		launch.Rank + "=" + strconv.Itoa(rank), launch.World + "=" + strconv.Itoa(world),
		launch.LocalRank + "=" + strconv.Itoa(local), launch.Master + "=" + master,
	}
}

// prefix names a rank before each of its lines, as wide as the last rank's.
func prefix(rank, world int) string {
	return fmt.Sprintf("[%*d] ", len(strconv.Itoa(world-1)), rank)
}
