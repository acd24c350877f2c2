package ranks

import (
	_ "embed"
	"fmt"
	"math"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// DefaultSSH is how a host is reached unless Hosts says otherwise. A password prompt would never be seen.
const DefaultSSH = "ssh -o BatchMode=yes -o ServerAliveInterval=10"

//go:embed remote.sh
var remoteScript string

// Hosts say where Remote starts ranks and what it takes along.
type Hosts struct {
	Names  []string      // of ssh, in rank order: host, user@host, host:slots; a name may come again
	Master string        // host:port of rank 0 as the ranks reach it
	SSH    string        // a command and its arguments, split at blanks; "" is DefaultSSH
	Folder string        // to start in, on every host
	Env    []string      // NAME=VALUE, for every rank
	Grace  time.Duration // from SIGTERM to SIGKILL once ssh has ended; 0 is Grace
}

// Remote makes the Job of the ranks on other hosts, which need a POSIX shell and argv's program but no hipfabric. The
// secret, the environment and the command travel through ssh's standard input, so that no process list shows them.
func Remote(h Hosts, argv []string) (*Job, error) {
	names, err := spread(h.Names)
	if err != nil {
		return nil, err
	}
	if err := check(len(names), argv); err != nil {
		return nil, err
	}
	if h.SSH == "" {
		h.SSH = DefaultSSH
	}
	if h.Grace == 0 {
		h.Grace = Grace
	}
	ssh := strings.Fields(h.SSH)
	if len(ssh) == 0 {
		return nil, fabric.Invalidf("the ssh command is blank; leave it out for %q", DefaultSSH)
	}
	if _, err := exec.LookPath(ssh[0]); err != nil {
		return nil, fmt.Errorf("ssh starts the ranks: install openssh-client, or name another command: %w", err)
	}
	if _, _, err := net.SplitHostPort(h.Master); err != nil {
		return nil, fabric.Invalidf("master %q is no host:port: %v", h.Master, err)
	}
	secret, err := NewSecret()
	if err != nil {
		return nil, err
	}
	j := &Job{}
	local := map[string]int{}
	for n, name := range names {
		env := slices.Concat(h.Env, variables(n, len(names), local[name], h.Master))
		local[name]++
		script := farSide(env, h, argv)
		// Only this line is on a command line. dd, unlike a shell or head, never reads past what it was told.
		line := fmt.Sprintf(`exec /bin/sh -c 'eval "$(dd bs=1 count=%d 2>/dev/null)"' hipfabric-rank-%d`, len(script), n)
		cmd := exec.Command(ssh[0], slices.Concat(ssh[1:], []string{"-T", name, line})...)
		j.ranks = append(j.ranks, &rank{number: n, prefix: prefix(n, len(names)), cmd: cmd, input: slices.Concat([]byte(script), secret)})
	}
	return j, nil
}

// spread gives one name a rank: host:2 is the host twice.
func spread(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		host, slots := name, 1
		if i := strings.LastIndexByte(name, ':'); i >= 0 && !strings.HasSuffix(name, "]") && strings.Count(unbracketed(name), ":") == 1 {
			n, err := strconv.Atoi(name[i+1:])
			if err != nil || n < 1 || n > fabric.MaxWorld {
				return nil, fabric.Invalidf("host %q: %q is no number of ranks in 1..%d", name, name[i+1:], fabric.MaxWorld)
			}
			host, slots = name[:i], n
		}
		host = strings.NewReplacer("[", "", "]", "").Replace(host)
		if host == "" || strings.HasPrefix(host, "-") || strings.ContainsAny(host, " \t\n'\"") {
			return nil, fabric.Invalidf("%q is no host name", name)
		}
		out = append(out, slices.Repeat([]string{host}, slots)...)
	}
	return out, nil
}

// unbracketed hides the colons of a bracketed IPv6 address.
func unbracketed(name string) string {
	if i := strings.IndexByte(name, ']'); i >= 0 {
		return name[i+1:]
	}
	return name
}

// MasterOf is where rank 0 listens when it runs on the first of names.
func MasterOf(names []string, port int) (string, error) {
	hosts, err := spread(names)
	if err != nil {
		return "", err
	}
	if len(hosts) == 0 {
		return "", fabric.Invalidf("no hosts given")
	}
	host := hosts[0][strings.LastIndexByte(hosts[0], '@')+1:]
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// farSide is what the far shell evaluates: the environment, the command as its arguments, then remote.sh.
func farSide(env []string, h Hosts, argv []string) string {
	var b strings.Builder
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		fmt.Fprintf(&b, "export %s=%s\n", name, Quote(value))
	}
	fmt.Fprintf(&b, "mask=$(umask) grace=%d folder=%s\nset --", int(math.Ceil(h.Grace.Seconds())), Quote(h.Folder))
	for _, arg := range argv {
		b.WriteString(" " + Quote(arg))
	}
	return b.String() + "\n" + remoteScript
}
