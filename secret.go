package hipfabric

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/hipfabric/hipfabric/fabric"
)

const maxSecretFile = 64 << 10

// ReadSecret reads a group's secret as Config.SecretFile does, for who joins ranks by fabric/bootstrap: from a regular file
// that only its owner may use, of 16 bytes to 64 KiB, one trailing newline ignored. Its errors are ErrInvalid.
func ReadSecret(path string) ([]byte, error) {
	// Before the open, which would wait for the other end of a pipe.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fabric.Invalidf("SecretFile %s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fabric.Invalidf("SecretFile: %v; make one with `hipfabric keygen`, the same on every host", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fabric.Invalidf("SecretFile: %v", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fabric.Invalidf("SecretFile %s is no regular file", path)
	}
	// Windows keeps access elsewhere than in the mode's bits.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fabric.Invalidf("SecretFile %s has mode %#o, which lets others use it; run: chmod 600 %s", path, mode, quoted(path))
	}
	secret, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return nil, fabric.Invalidf("SecretFile: %v", err)
	}
	if len(secret) > maxSecretFile {
		return nil, fabric.Invalidf("SecretFile %s is longer than %d bytes", path, maxSecretFile)
	}
	if line, ended := bytes.CutSuffix(secret, []byte("\n")); ended {
		secret = bytes.TrimSuffix(line, []byte("\r"))
	}
	if len(secret) < minSecret {
		return nil, fabric.Invalidf("SecretFile %s holds %d bytes, a trailing newline apart; at least %d are needed (`hipfabric keygen` makes one)",
			path, len(secret), minSecret)
	}
	return secret, nil
}

// quoted is path as a shell takes it.
func quoted(path string) string {
	for _, r := range path {
		if notInNames(r) {
			return fmt.Sprintf("'%s'", bytes.ReplaceAll([]byte(path), []byte("'"), []byte(`'\''`)))
		}
	}
	return path
}
