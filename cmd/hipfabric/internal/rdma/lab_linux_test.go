package rdma

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// lab is hosts with HCAs of verbstest, each with a tree of its own in place of /sys, /proc, /dev and /lib.
type lab struct {
	t      *testing.T
	fabric *verbstest.Fabric
	hosts  []*planted
	then   func() // see sooner
}

// planted is a host whose facts a test may change.
type planted struct {
	t          *testing.T
	verbs      *verbstest.Host
	sys        *System
	interfaces []machine.Interface
	denied     map[string]bool
	firewalls  []string
}

func newLab(t *testing.T, top verbstest.Topology) *lab {
	t.Helper()
	f, err := verbstest.New(1, top)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	l := &lab{t: t, fabric: f}
	for i := range f.Hosts() {
		l.hosts = append(l.hosts, plant(t, f.Host(i), i))
	}
	return l
}

// plant makes a healthy host.
func plant(t *testing.T, v *verbstest.Host, n int) *planted {
	p := &planted{t: t, verbs: v, denied: map[string]bool{}}
	lib := v.Library()
	p.sys = &System{
		Root: t.TempDir(), Load: func() (*verbs.Library, error) { return lib, nil },
		Interfaces: func() ([]machine.Interface, error) { return p.interfaces, nil },
		Limits:     func() (soft, hard int64, told bool) { return NoLimit, NoLimit, true },
		May: func(path string) error {
			if p.denied[filepath.Base(path)] {
				return os.ErrPermission
			}
			return nil
		},
		Facts:     func() machine.Facts { return machine.Facts{OS: "linux/amd64", Kernel: "6.1.0", CPU: "a CPU", Cores: 8} },
		Firewalls: func(context.Context) []string { return p.firewalls },
		Name:      func() (string, error) { return fmt.Sprintf("host%d", n), nil },
	}
	p.write("proc/version", "Linux version 6.1.0 (gcc)")
	p.write("proc/cpuinfo", "flags\t\t: fpu vme")
	p.write("proc/cmdline", "quiet")
	p.write("proc/self/uid_map", "         0          0 4294967295")
	p.write("proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n")
	p.write("proc/sys/kernel/osrelease", "6.1.0")
	p.write("proc/modules", "mlx5_ib 1 0 - Live 0x0\nib_uverbs 1 1 mlx5_ib, Live 0x0\nib_core 1 2 ib_uverbs,mlx5_ib, Live 0x0\n")
	p.write("lib/modules/6.1.0/modules.builtin", "kernel/fs/ext4/ext4.ko\n")
	p.write("lib/modules/6.1.0/modules.dep", "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz: kernel/net/ipv4/udp_tunnel.ko.xz\nkernel/drivers/infiniband/hw/irdma/irdma.ko:\n")
	p.write("dev/infiniband/rdma_cm", "")
	for i := range v.HCAs() {
		p.hca(i)
	}
	return p
}

func (p *planted) hca(i int) {
	h := p.verbs.HCA(i)
	function := fmt.Sprintf("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.%d", i)
	for name, text := range map[string]string{"current_link_speed": "16.0 GT/s PCIe", "current_link_width": "16", "max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16", "numa_node": "0", "iommu_group/type": "identity"} {
		p.write(filepath.Join(function, name), text)
	}
	p.write("sys/devices/pci0000:00/0000:00:01.0/config", string(make([]byte, 4096)))
	p.link("../../../../bus/pci/drivers/mlx5_core", filepath.Join(function, "driver"))
	p.write("sys/bus/pci/drivers/mlx5_core/bind", "")
	dir := filepath.Join(infiniband, h.Name())
	p.link("../../../devices/pci0000:00/0000:00:01.0/0000:01:00."+fmt.Sprint(i), filepath.Join(dir, "device"))
	p.write(filepath.Join(dir, "fw_ver"), "28.39.1002")
	p.write(filepath.Join(dir, "node_type"), "1: CA")
	port := filepath.Join(dir, "ports/1")
	for name, text := range map[string]string{"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "100 Gb/sec (4X EDR)", "link_layer": "Ethernet", "counters/port_xmit_data": "1000",
		"hw_counters/out_of_sequence": "0", "hw_counters/local_ack_timeout_err": "0", "hw_counters/lifespan": "10"} {
		p.write(filepath.Join(port, name), text)
	}
	p.write(filepath.Join("sys/class/infiniband_verbs", fmt.Sprintf("uverbs%d", i), "ibdev"), h.Name())
	p.write(fmt.Sprintf("dev/infiniband/uverbs%d", i), "")
	p.interfaces = append(p.interfaces, machine.Interface{Name: h.NetDev(), MTU: 9000, Up: true, Driver: "mlx5_core", Mbits: 100_000, RxUsecs: 8, RPFilter: 0})
	if h.Addr().IsValid() {
		p.interfaces[i].Addresses = []string{h.Addr().String(), "fe80::1/64"}
	}
}

func (p *planted) write(path, text string) {
	p.t.Helper()
	path = filepath.Join(p.sys.Root, path)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p.t, os.WriteFile(path, []byte(text), 0o600))
}

func (p *planted) link(target, path string) {
	p.t.Helper()
	path = filepath.Join(p.sys.Root, path)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p.t, os.Symlink(target, path))
}

func (p *planted) remove(paths ...string) {
	p.t.Helper()
	for _, path := range paths {
		require.NoError(p.t, os.RemoveAll(filepath.Join(p.sys.Root, path)))
	}
}

// withoutRDMA takes all that the kernel has of it.
func (p *planted) withoutRDMA() {
	p.verbs.NoRDMA()
	p.remove("sys/class/infiniband", "sys/class/infiniband_verbs", "dev/infiniband")
	p.write("proc/modules", "")
	for i := range p.interfaces {
		p.interfaces[i].Driver = "r8169"
	}
}

// software makes an rxe device of the first HCA.
func (p *planted) software() {
	p.remove(infiniband + "/mem0/device")
	p.write(infiniband+"/mem0/parent", p.verbs.HCA(0).NetDev())
}

// look judges one host alone.
func (p *planted) look() *Report {
	r := &Report{Schema: Schema, Host: *p.sys.Look(p.t.Context())}
	r.Findings = Findings(r)
	return r
}

// meet has host 0 ask host 1, at two addresses of the loopback, so that they count as two hosts.
func (l *lab) meet(tell func(string), change ...func(*Question)) *Report {
	l.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(l.t, err)
	address := listener.Addr().String()
	require.NoError(l.t, listener.Close())
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, l.hosts[1].sys, doctor.Ends{Peer: address, Listen: []string{address}}, false, func(string) {})
	}()
	defer func() {
		cancel()
		require.NoError(l.t, <-ended)
	}()
	q := Question{Ends: doctor.Ends{Peer: address}, FarCommand: "hipfabric doctor rdma --listen " + address, Timeout: 5 * time.Minute}
	for _, c := range change {
		c(&q)
	}
	r, err := Examine(l.t.Context(), l.hosts[0].sys, q, tell)
	require.NoError(l.t, err)
	return r
}

// idle says that nothing is left open on any host.
func (l *lab) idle() {
	l.t.Helper()
	for _, h := range l.hosts {
		require.Equal(l.t, verbstest.Left{}, h.verbs.Left())
	}
}

// codes are those of the findings, without what a busy machine brings.
func codes(r *Report) []string {
	list := []string{}
	for _, f := range r.Findings {
		if f.Code != "long-round-trip" {
			list = append(list, strings.TrimSuffix(f.Code+" of "+f.Host, " of "))
		}
	}
	return list
}

// find is the finding of a code that says something.
func find(t *testing.T, r *Report, code, says string) doctor.Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Code == code && strings.Contains(strings.Join([]string{f.Seen, f.Bound, f.Why}, "\n"), says) {
			for _, text := range []string{f.Seen, f.Bound, f.Why, strings.Join(f.Mend, "")} {
				require.NotEmpty(t, text, "%+v", f)
			}
			return f
		}
	}
	require.Fail(t, "not found", "%s with %q in %+v", code, says, r.Findings)
	return doctor.Finding{}
}
