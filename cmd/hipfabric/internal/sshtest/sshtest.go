// Package sshtest gives tests an ssh server of their own: this user, on loopback, with keys that end with the test.
package sshtest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Start serves until the test ends and gives the ssh command that reaches it at 127.0.0.1. It skips the test, and says
// why, where OpenSSH is not installed.
func Start(t testing.TB) (ssh string) {
	t.Helper()
	daemon, err := exec.LookPath("sshd")
	if err != nil {
		daemon = "/usr/sbin/sshd" // which needs an absolute path anyway
	}
	for _, program := range []string{daemon, "ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian: openssh-server openssh-client)", program)
		}
	}
	if os.Geteuid() == 0 { // sshd wants it, and only the system's own service makes it
		must(t, os.MkdirAll("/run/sshd", 0o755))
	}
	dir := t.TempDir()
	for _, key := range []string{"host", "user"} {
		out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput()
		if err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	public, err := os.ReadFile(filepath.Join(dir, "user.pub"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "authorized_keys"), public, 0o600))
	port := freePort(t)
	config := filepath.Join(dir, "config")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/authorized_keys\n"+
		"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n", port, dir, dir), 0o600))
	serve(t, exec.Command(daemon, "-D", "-e", "-f", config))
	return fmt.Sprintf("ssh -F none -i %s/user -p %d -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=%s/known -o LogLevel=ERROR",
		dir, port, dir)
}

// serve runs the daemon until the test ends, and returns once it listens.
func serve(t testing.TB, daemon *exec.Cmd) {
	t.Helper()
	log, err := daemon.StderrPipe()
	must(t, err)
	must(t, daemon.Start())
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	})
	var said []string
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if said = append(said, lines.Text()); strings.Contains(lines.Text(), "Server listening") {
			go func() { // or the daemon would wait for a reader
				for lines.Scan() {
				}
			}()
			return
		}
	}
	t.Fatalf("sshd does not listen: %s", strings.Join(said, "\n"))
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	return l.Addr().(*net.TCPAddr).Port
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
