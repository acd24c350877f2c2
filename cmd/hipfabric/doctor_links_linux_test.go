package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
)

// twoHosts are two network namespaces and a cable between them, in namespaces of their own so that no address is taken.
type twoHosts struct {
	t         *testing.T
	near, far string
}

const (
	nearAddress, farAddress = "10.77.1.1", "10.77.1.2"
	farPort                 = farAddress + ":7999"
)

func cabled(t *testing.T) twoHosts {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip (iproute2)")
	}
	h := twoHosts{t, fmt.Sprintf("hfdoc-a-%d", os.Getpid()), fmt.Sprintf("hfdoc-b-%d", os.Getpid())}
	for _, ns := range []string{h.near, h.far} {
		if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
			t.Skipf("no network namespace can be made here: %s", out)
		}
		t.Cleanup(func() { h.ip("netns del " + ns) })
	}
	h.cable("c0", "10.77.1")
	return h
}

// cable adds a pair of interfaces of one name, .1 and .2 of a /24.
func (h twoHosts) cable(name, net string) {
	h.t.Helper()
	h.ip(fmt.Sprintf("link add %s netns %s type veth peer name %s netns %s", name, h.near, name, h.far))
	for i, ns := range []string{h.near, h.far} {
		h.ip(fmt.Sprintf("-n %s addr add %s.%d/24 dev %s", ns, net, i+1, name))
		h.ip(fmt.Sprintf("-n %s link set lo up", ns))
		h.ip(fmt.Sprintf("-n %s link set %s up", ns, name))
	}
}

func (h twoHosts) ip(line string) {
	h.t.Helper()
	out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
	require.NoError(h.t, err, "ip %s: %s", line, out)
}

// in runs a program in a namespace; where the system lacks something, the test is skipped.
func (h twoHosts) in(ns, line string) {
	h.t.Helper()
	args := append([]string{"netns", "exec", ns}, strings.Fields(line)...)
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		h.t.Skipf("%s does not work here: %s", line, out)
	}
}

// begin starts hipfabric in a namespace.
func (h twoHosts) begin(ns string, args ...string) *program {
	h.t.Helper()
	p := &program{t: h.t, cmd: exec.Command("ip", append([]string{"netns", "exec", ns, os.Args[0]}, args...)...), stdout: &watched{}, stderr: &watched{}, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	require.NoError(h.t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	h.t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		p.code()
	})
	return p
}

// listen starts the far end.
func (h twoHosts) listen(key string) {
	h.t.Helper()
	p := h.begin(h.far, "doctor", "links", "--listen", farPort, "--secret-file", key)
	p.stderr.await(h.t, "waiting at")
}

// ask runs the near end.
func (h twoHosts) ask(key string, args ...string) (code int, r doctor.Report, took time.Duration) {
	h.t.Helper()
	began := time.Now()
	p := h.begin(h.near, append([]string{"doctor", "links", "--json", "--time", "100ms", "--peer", farPort, "--secret-file", key}, args...)...)
	code = p.code()
	r = document(h.t, p.stdout.String(), p.stderr.String())
	assert.Equal(h.t, r.Errors() == 0, code == exitOK, "%d, %+v", code, r.Findings)
	return code, r, time.Since(began)
}

func finding(t *testing.T, r doctor.Report, code string) doctor.Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Code == code {
			return f
		}
	}
	require.Fail(t, "no finding "+code, "%+v", r)
	return doctor.Finding{}
}

func TestDoctorFindsUnequalMTUs(t *testing.T) {
	h := cabled(t)
	key := secretFile(t)
	h.ip("-n " + h.near + " link set c0 mtu 9000")
	h.listen(key)
	_, r, _ := h.ask(key)
	f := finding(t, r, "unequal-mtu")
	assert.Equal(t, "MTU 9000 on c0 here, 1500 on c0 there", f.Seen)
	assert.Equal(t, []string{"ip link set dev c0 mtu 9000      (the peer)"}, f.Mend)
	assert.Equal(t, []string{nearAddress, farAddress, "c0", "c0"}, []string{r.Near.Address, r.Far.Address, r.Near.Interface, r.Far.Interface})
	assert.NotContains(t, codes(r), "same-host")

	h.ip("-n " + h.far + " link set c0 mtu 9000")
	_, r, _ = h.ask(key)
	assert.NotContains(t, codes(r), "unequal-mtu")
	require.Len(t, r.Rates, 8)
	for _, rate := range r.Rates {
		assert.Equal(t, 9000, rate.PathMTU)
		assert.InDelta(t, 8960, rate.MSS, 60)
		assert.Positive(t, rate.Segments)
	}
}

func TestDoctorTellsAClosedPortFromADroppedOne(t *testing.T) {
	h := cabled(t)
	key := secretFile(t)
	code, r, _ := h.ask(key)
	assert.Equal(t, exitFailed, code)
	f := finding(t, r, doctor.Refused)
	assert.Contains(t, strings.Join(f.Mend, "\n"), "hipfabric doctor links --listen "+farPort+" --secret-file "+key)

	h.listen(key)
	h.in(h.far, "iptables -A INPUT -p tcp --dport 7999 -j DROP")
	code, r, took := h.ask(key, "--timeout", "20s")
	assert.Equal(t, exitFailed, code)
	assert.Less(t, took, patience)
	f = finding(t, r, doctor.Silent)
	assert.Contains(t, f.Why, "a firewall drops the packets", "the host has answered to ARP")
	for _, line := range []string{"nft insert rule inet filter input ip saddr 10.77.1.1 tcp dport 7999 accept", "ufw allow from 10.77.1.1 to any port 7999 proto tcp",
		`firewall-cmd --add-rich-rule='rule family="ipv4" source address="10.77.1.1" port port="7999" protocol="tcp" accept'`} {
		assert.Contains(t, strings.Join(f.Mend, "\n"), line)
	}

	h.in(h.far, "iptables -R INPUT 1 -p tcp --dport 7999 -j REJECT --reject-with icmp-admin-prohibited")
	_, r, _ = h.ask(key)
	assert.Contains(t, finding(t, r, doctor.Unreachable).Why, "a firewall rejects the port")
}

func TestDoctorFindsAnAddressThatNobodyHas(t *testing.T) {
	h := cabled(t)
	key := secretFile(t)
	_, r, _ := h.ask(key, "--peer", "10.77.1.9:7999")
	f := finding(t, r, doctor.Unreachable)
	assert.Equal(t, "silent", r.NotReached.Neighbour)
	assert.Contains(t, f.Mend[0], "ip route get 10.77.1.9")
	_, r, _ = h.ask(key, "--peer", "10.78.1.9:7999")
	finding(t, r, doctor.Unreachable)
	assert.Empty(t, r.NotReached.Address, "no route")
}

func TestDoctorNamesAnotherSecret(t *testing.T) {
	h := cabled(t)
	h.listen(secretFile(t))
	code, r, _ := h.ask(secretFile(t))
	assert.Equal(t, exitEnvironment, code)
	assert.Equal(t, []string{doctor.Unauthorized}, codes(r))
}

func TestDoctorFindsCablesThatShareASubnet(t *testing.T) {
	h := cabled(t)
	key := secretFile(t)
	h.ip(fmt.Sprintf("link add c1 netns %s type veth peer name c1 netns %s", h.near, h.far))
	for i, ns := range []string{h.near, h.far} {
		h.ip(fmt.Sprintf("-n %s addr add 10.77.1.%d/24 dev c1", ns, 11+i))
		h.ip(fmt.Sprintf("-n %s link set c1 up", ns))
	}
	h.listen(key)
	code, r, _ := h.ask(key)
	assert.Equal(t, exitFailed, code)
	f := finding(t, r, "shared-subnet")
	assert.Contains(t, f.Seen, "c0 and c1 both have an address in 10.77.1.0/24")
	assert.Equal(t, "shared-subnet", r.Findings[1].Code, "each host has it: %+v", r.Findings)
}

func TestDoctorFindsASlowDirection(t *testing.T) {
	h := cabled(t)
	key := secretFile(t)
	h.in(h.near, "tc qdisc add dev c0 root tbf rate 200mbit burst 64k latency 50ms")
	h.listen(key)
	_, r, _ := h.ask(key, "--lanes", "1,4", "--time", "500ms")
	f := finding(t, r, "unequal-directions")
	assert.Contains(t, f.Seen, "to the peer")
	for _, rate := range r.Rates {
		if rate.Direction == doctor.ToPeer {
			assert.Less(t, rate.Gbps, 2.0)
		}
	}
}

func TestDoctorFindsThatLargeSegmentsAreLost(t *testing.T) {
	h := cabled(t)
	key := secretFile(t)
	h.in(h.far, "iptables -A INPUT -p tcp --dport 7999 -m length --length 1000:65535 -j DROP")
	h.listen(key)
	code, r, _ := h.ask(key, "--timeout", "1m")
	assert.Equal(t, exitFailed, code)
	f := finding(t, r, "large-segments-lost")
	assert.Contains(t, f.Seen, "to peer")
	assert.Contains(t, f.Mend[0], "ping -M do -s 1472 "+farAddress)
	toPeer := 0
	for _, rate := range r.Rates {
		if rate.Direction == doctor.ToPeer {
			toPeer++
		}
	}
	assert.Equal(t, 1, toPeer, "a direction that stalls is not tried again")
	assert.Len(t, r.Rates, 1+4)
}

func TestDoctorFindsASmallerMTUBetween(t *testing.T) {
	h := cabled(t)
	key := secretFile(t)
	h.ip("-n " + h.near + " link set c0 mtu 9000")
	h.ip("-n " + h.far + " link set c0 mtu 9000")
	h.ip("-n " + h.near + " route change 10.77.1.0/24 dev c0 src 10.77.1.1 mtu 1400")
	h.listen(key)
	_, r, _ := h.ask(key)
	assert.Contains(t, finding(t, r, "path-mtu").Seen, "to peer takes packets of 1400 bytes")
}

func TestDoctorAsksOverEachOfTwoCablesAndIPv6(t *testing.T) {
	h := cabled(t)
	key := secretFile(t)
	h.cable("c1", "10.77.2")
	for i, ns := range []string{h.near, h.far} {
		h.ip(fmt.Sprintf("-n %s addr add fd77::%d/64 dev c1 nodad", ns, i+1))
	}
	listen := h.begin(h.far, "doctor", "links", "--listen", farPort, "--listen", "10.77.2.2:7999,[fd77::2]:7999", "--secret-file", key)
	listen.stderr.await(t, "waiting at")
	assert.Contains(t, listen.stderr.String(), "hipfabric doctor links --peer 10.77.2.2:7999 --secret-file")
	for peer, want := range map[string][2]string{farPort: {nearAddress, "c0"}, "10.77.2.2:7999": {"10.77.2.1", "c1"}, "[fd77::2]:7999": {"fd77::1", "c1"}} {
		_, r, _ := h.ask(key, "--peer", peer)
		assert.Equal(t, want, [2]string{r.Near.Address, r.Near.Interface}, peer)
		assert.Equal(t, want[1], r.Far.Interface)
		assert.Len(t, r.Rates, 8)
	}
	h.ip("-n " + h.near + " link set c0 down")
	_, r, _ := h.ask(key)
	assert.Equal(t, []string{doctor.Unreachable}, codes(r), "the other cable still works and is no way there")
}

func TestALinkThatGoesDownIsNamed(t *testing.T) {
	h := cabled(t)
	key := secretFile(t)
	far := h.begin(h.far, "doctor", "links", "--listen", farPort, "--secret-file", key)
	far.stderr.await(t, "waiting at")
	near := h.begin(h.near, "doctor", "links", "--json", "--time", "3s", "--timeout", "1m", "--peer", farPort, "--secret-file", key)
	far.stdout.await(t, "measured by")
	h.ip("-n " + h.far + " link set c0 down")
	assert.Equal(t, exitFailed, near.code())
	assert.Contains(t, codes(document(t, near.stdout.String(), near.stderr.String())), "cut-short")
}
