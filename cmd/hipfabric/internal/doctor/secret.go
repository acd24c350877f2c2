package doctor

import (
	"bytes"
	"io"
	"os"
	"runtime"

	"github.com/hipfabric/hipfabric/fabric"
)

const maxSecret = 64 << 10

// ReadSecret reads a secret by the rules of Config.SecretFile: a regular file that only its owner may use, one trailing
// newline ignored. The bound below is bootstrap's.
func ReadSecret(path string) ([]byte, error) {
	info, err := os.Stat(path) // before the open, which would wait for the other end of a pipe
	switch {
	case err != nil:
		return nil, fabric.Invalidf("the secret: %v; make one with hipfabric keygen, the same on both hosts", err)
	case !info.Mode().IsRegular():
		return nil, fabric.Invalidf("the secret %s is no regular file", path)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return nil, fabric.Invalidf("the secret %s has mode %#o, which lets others use it; run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fabric.Invalidf("the secret: %v", err)
	}
	defer f.Close()
	secret, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil || len(secret) > maxSecret {
		return nil, fabric.Invalidf("the secret %s cannot be read, or is longer than %d bytes: %v", path, maxSecret, err)
	}
	if line, ended := bytes.CutSuffix(secret, []byte("\n")); ended {
		secret = bytes.TrimSuffix(line, []byte("\r"))
	}
	return secret, nil
}
