package rdma

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// hostCase is a fact that is planted in a healthy host, and the finding that it brings.
type hostCase struct {
	code     string
	severity doctor.Severity
	says     string // somewhere in the finding
	mends    string // in one of the commands
	with     func(*planted)
}

const port1 = infiniband + "/mem0/ports/1"

func missingLibrary() (*verbs.Library, error) {
	return nil, &verbs.LoadError{Library: "libibverbs.so.1", Err: errors.New("cannot open shared object file")}
}

func bareLibrary() (*verbs.Library, error) {
	return nil, &verbs.LoadError{Library: "libibverbs.so.1", Err: errors.New("RDMA needs a build for Linux with cgo")}
}

// bridge is a bridge's configuration with ACS set so.
func bridge(control uint16) string {
	space := make([]byte, 4096)
	binary.LittleEndian.PutUint32(space[0x100:], 0x0001|0x148<<20) // error reporting, and where the next is
	binary.LittleEndian.PutUint32(space[0x148:], acs|1<<16)
	binary.LittleEndian.PutUint16(space[0x148+acsControl:], control)
	return string(space)
}

// counts has a counter grow while messages go.
func counts(to string) func(*planted) {
	return func(p *planted) {
		p.verbs.HCA(0).Tamper(func(imm, n uint32) (uint32, uint32) {
			p.write(port1+"/hw_counters/out_of_sequence", to)
			return imm, n
		})
	}
}

func hostCases() []hostCase {
	limit := func(soft, hard int64) func(*planted) {
		return func(p *planted) { p.sys.Limits = func() (int64, int64, bool) { return soft, hard, true } }
	}
	refuse := func(verb string, e syscall.Errno) func(*planted) {
		return func(p *planted) { p.verbs.Refuse(verb, 1, e) }
	}
	all := func(changes ...func(*planted)) func(*planted) {
		return func(p *planted) {
			for _, c := range changes {
				c(p)
			}
		}
	}
	bare := (*planted).withoutRDMA
	file := func(path, text string) func(*planted) { return func(p *planted) { p.write(path, text) } }
	return []hostCase{
		{"wsl", doctor.Error, "this is WSL", "boot Linux", all(bare, file("proc/version", "Linux version 5.15.0-Microsoft-standard-WSL2"))},
		{"no-library", doctor.Error, "cannot open shared object", "apt-get install libibverbs1 ibverbs-providers", func(p *planted) { p.sys.Load = missingLibrary }},
		{"bare-build", doctor.Error, "built without", "make build", func(p *planted) { p.sys.Load = bareLibrary }},
		{"no-device", doctor.Error, "ethmem0 (r8169)", "rdma link add rxe0 type rxe netdev ethmem0", bare},
		{"no-device", doctor.Error, "over TCP", "on the container's host", all(bare, file(".dockerenv", ""))},
		{"no-device", doctor.Error, "over TCP", "virtual machine's host", all(bare, file("proc/cpuinfo", "flags\t: fpu hypervisor lahf_lm"))},
		{"unknown-device", doctor.Error, "there is no device mlx5_0\na device that is there: mem0", "doctor rdma --device mem0", func(p *planted) { p.sys.Only = []string{"mlx5_0"} }},
		{"unknown-device", doctor.Error, "there is no device men0; did you mean mem0?", "doctor rdma --device mem0", func(p *planted) { p.sys.Only = []string{"men0", "mem0"} }},
		{"driver-not-loaded", doctor.Error, "irdma, is not loaded (available)", "modprobe irdma", all(bare, func(p *planted) { p.interfaces[0].Driver = "ice" })},
		{"driver-not-loaded", doctor.Error, "irdma, is not loaded (available)", "modprobe irdma      (on the container's host)", all(bare, file(".dockerenv", ""), func(p *planted) { p.interfaces[0].Driver = "ice" })},
		{"driver-not-loaded", doctor.Warning, "bnxt_re, is not loaded (missing)", "apt-get install linux-modules-extra-6.1.0 && modprobe bnxt_re", func(p *planted) {
			p.interfaces = append(p.interfaces, machine.Interface{Name: "eth9", Driver: "bnxt_en"})
		}},
		{"not-listed", doctor.Error, "no provider", "apt-get install ibverbs-providers", func(p *planted) { p.verbs.NoRDMA() }},
		{"not-listed", doctor.Error, "ib_uverbs", "modprobe ib_uverbs", func(p *planted) { p.verbs.NoRDMA(); p.remove("sys/class/infiniband_verbs") }},
		{"no-device-node", doctor.Error, "/dev/infiniband/uverbs0", "udevadm trigger", func(p *planted) { p.remove("dev/infiniband/uverbs0") }},
		{"no-device-node", doctor.Error, "mem0 has no file", "docker run --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1", all(refuse("ibv_open_device", syscall.ENOENT), file(".dockerenv", ""))},
		{"no-device-node", doctor.Error, "mem0 has no file", "podman run --device=/dev/infiniband", all(refuse("ibv_open_device", syscall.ENXIO), file("run/.containerenv", ""))},
		{"no-device-node", doctor.Error, "mem0 has no file", "device plugin", all(refuse("ibv_open_device", syscall.ENODEV), file("proc/1/cgroup", "0::/kubepods.slice/pod1"))},
		{"no-permission", doctor.Error, "may not use /dev/infiniband/uverbs0", "chmod 0666 /dev/infiniband/uverbs0", func(p *planted) { p.denied["uverbs0"] = true }},
		{"no-permission", doctor.Error, "the file of mem0", "90-rdma.rules", refuse("ibv_open_device", syscall.EACCES)},
		{"no-permission", doctor.Error, "the file of mem0", "docker run", all(refuse("ibv_open_device", syscall.EPERM), file(".dockerenv", ""))},
		{"device-failed", doctor.Error, "ibv_open_device on mem0", "dmesg | grep -i mlx5_core", refuse("ibv_open_device", syscall.EIO)},
		{"device-failed", doctor.Error, "ibv_query_port on mem0", "dmesg", refuse("ibv_query_port", syscall.EIO)},
		{"memlock", doctor.Warning, "may lock 8388608 bytes", "ulimit -l unlimited", limit(8<<20, NoLimit)},
		{"memlock", doctor.Warning, "may lock 65536 bytes", "limits.conf", limit(64<<10, 64<<10)},
		{"memlock", doctor.Warning, "may lock 65536 bytes", "--ulimit memlock=-1", all(limit(64<<10, 64<<10), file(".dockerenv", ""))},
		{"memlock", doctor.Warning, "does not count in a user namespace", "LimitMEMLOCK=infinity", all(limit(64<<10, 64<<10), file("proc/self/status", "CapEff:\t000001ffffffffff\n"), file("proc/self/uid_map", "0 1000 1\n1 100000 65536"))},
		{"memlock", doctor.Error, "could not be registered", "ulimit -l unlimited", func(p *planted) { p.verbs.Memlock(4096) }},
		{"memlock", doctor.Error, "ibv_create_cq", "ulimit -l unlimited", refuse("ibv_create_cq", syscall.ENOMEM)},
		{"no-port", doctor.Error, "mem0 port 1 is down", "rdma link", func(p *planted) { p.verbs.HCA(0).Link(false) }},
		{"port-down", doctor.Warning, "is down, its link disabled", "ip link set dev ethmem0 up", func(p *planted) { p.verbs.HCA(0).Link(false) }},
		{"port-down", doctor.Warning, "is down, its link polling", "ethtool ethmem0", all(refuse("ibv_open_device", syscall.EIO), file(port1+"/state", "1: DOWN"), file(port1+"/phys_state", "2: Polling"), file(port1+"/gid_attrs/types/0", "RoCE v2"), file(port1+"/gid_attrs/ndevs/0", "ethmem0"))},
		{"no-gid", doctor.Error, "has no GID", "ip addr add 10.77.0.1/24 dev ethmem0", func(p *planted) {
			p.write("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/net/ethmem0/dev_port", "0")
			p.verbs.HCA(0).NoGIDs()
		}},
		{"old-gid", doctor.Error, "RoCE v1 alone", "roce_mode=2", func(p *planted) { p.verbs.HCA(0).RoCEv1Only() }},
		{"link-local-only", doctor.Warning, "link-local addresses alone", "ip addr add", func(p *planted) { p.verbs.HCA(0).LinkLocalOnly() }},
		{"other-namespace", doctor.Warning, "10.77.0.1, which no interface here has", "ip -br addr", func(p *planted) { p.interfaces[0].Addresses = nil }},
		{"other-namespace", doctor.Warning, "10.77.0.1, which no interface here has", "--network=host", all(func(p *planted) { p.interfaces = nil }, file(".dockerenv", ""))},
		{"small-mtu", doctor.Warning, "has an RDMA MTU of 1024, as ethmem0 has an MTU of 1500", "ip link set dev ethmem0 mtu 9000", func(p *planted) { p.interfaces[0].MTU = 1500; require.NoError(p.t, p.verbs.HCA(0).MTU(1024)) }},
		{"small-mtu", doctor.Warning, "though ethmem0 has 9000", "ip link set dev ethmem0 down && ip link set dev ethmem0 up", func(p *planted) { require.NoError(p.t, p.verbs.HCA(0).MTU(1024)) }},
		{"pcie", doctor.Warning, "4 lanes of PCIe at 8 GT/s, which carry 32 Gb/s, and a link of 103; it can do 16 at 16", "lspci -vv -s 0000:01:00.0", all(file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/current_link_speed", "8.0 GT/s PCIe"), file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/current_link_width", "4"))},
		{"iommu", doctor.Warning, "translates what mem0", "iommu=pt", file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/iommu_group/type", "DMA-FQ")},
		{"acs", doctor.Note, "ACS of 0000:00:01.0", "setpci -s 0000:00:01.0 ECAP_ACS+0x6.w=0000", file("sys/devices/pci0000:00/0000:00:01.0/config", bridge(redirection))},
		{"interrupt-moderation", doctor.Warning, "carries mem0, has rx-usecs 64", "ethtool -C ethmem0", all((*planted).software, func(p *planted) { p.interfaces[0].RxUsecs = 64 })},
		{"interrupt-moderation", doctor.Warning, "holds interrupts back for 128 us", "doctor links", all((*planted).software, func(p *planted) { p.interfaces[0].Driver = thunderbolt })},
		{"software-device", doctor.Note, "in software", "rdma link delete mem0", (*planted).software},
		{"firewall", doctor.Note, "ufw at work", "ufw allow 4791/udp", all((*planted).software, func(p *planted) { p.firewalls = []string{"ufw"} })},
		{"counted", doctor.Note, "mem0 port 1 has counted local_ack_timeout_err 7", "rdma statistic show link mem0/1", file(port1+"/hw_counters/local_ack_timeout_err", "7")},
		{"counted-now", doctor.Warning, "mem0 port 1 counted out_of_sequence +2 while it wrote to itself", "ethtool -S ethmem0", counts("2")},
		{"no-ecn", doctor.Note, "ethmem0 has ECN for RoCE off", "ecn/roce_np/enable/3", all(file("sys/class/net/ethmem0/ecn/roce_np/enable/3", "0"), file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/net/ethmem0/dev_port", "0"))},
		{"infiniband-port", doctor.Note, "an InfiniBand port", "mstconfig -d 0000:01:00.0 set LINK_TYPE_P1=2", all(refuse("ibv_open_device", syscall.EIO), file(port1+"/link_layer", "InfiniBand"))},
		{"not-roce", doctor.Note, "does not speak RoCE", "rdma dev show efa0", func(p *planted) { p.write(infiniband+"/efa0/node_type", "8: Unspecified") }},
		{"self-test", doctor.Error, "cannot write to itself: ", "dmesg", refuse("ibv_post_send", syscall.EINVAL)},
		{"self-test", doctor.Warning, "cannot write to itself: ", "doctor rdma --listen", func(p *planted) { p.verbs.HCA(0).Mute(true) }},
		{"wrong-bytes", doctor.Error, "mem0 port 1 to itself", "dmesg", func(p *planted) { p.verbs.HCA(0).Tamper(func(imm, n uint32) (uint32, uint32) { return imm + 1, n }) }},
	}
}

func TestAHealthyHostHasNoFinding(t *testing.T) {
	l := newLab(t, verbstest.Switch(2, 2))
	r := l.hosts[0].look()
	assert.Empty(t, r.Findings)
	assert.NotNil(t, r.Findings, "an empty list in JSON, not null")
	l.idle()
}

func TestEachPlantedFactIsFound(t *testing.T) {
	for _, c := range hostCases() {
		t.Run(c.code+" "+c.says, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, verbstest.Switch(1, 1))
			c.with(l.hosts[0])
			r := l.hosts[0].look()
			f := find(t, r, c.code, c.says)
			assert.Equal(t, c.severity, f.Severity)
			assert.Equal(t, ThisHost, f.Host)
			assert.Contains(t, strings.Join(f.Mend, "\n"), c.mends)
			l.verbsIdle(0)
		})
	}
}

// verbsIdle is idle for a host whose calls may be refused.
func (l *lab) verbsIdle(i int) {
	l.t.Helper()
	assert.Zero(l.t, l.hosts[i].verbs.Left().QPs)
	assert.Zero(l.t, l.hosts[i].verbs.Left().Registered)
}

// TestWhatIsAlmostWrongIsNotFound plants the nearest to a fact that brings a finding.
func TestWhatIsAlmostWrongIsNotFound(t *testing.T) {
	for code, with := range map[string]func(*planted){
		"memlock": func(p *planted) {
			p.sys.Limits = func() (int64, int64, bool) { return 64 << 10, 64 << 10, true }
			p.write("proc/self/status", "CapEff:\t0000000000004000\n")
		},
		"memlock of a limit that will do": func(p *planted) {
			p.sys.Limits = func() (int64, int64, bool) { return enoughMemlock, enoughMemlock, true }
		},
		"acs":                  func(p *planted) { p.write("sys/devices/pci0000:00/0000:00:01.0/config", bridge(1<<0|1<<4)) },
		"acs of a user":        func(p *planted) { p.write("sys/devices/pci0000:00/0000:00:01.0/config", bridge(redirection)[:64]) },
		"interrupt-moderation": func(p *planted) { p.interfaces[0].RxUsecs = 200 },
		"firewall":             func(p *planted) { p.firewalls = []string{"ufw"} },
		"counted":              func(p *planted) { p.write(port1+"/counters/port_xmit_data", "99999999") },
		"driver-not-loaded":    func(p *planted) { p.remove("proc/modules"); p.write("sys/module/mlx5_ib/initstate", "live") },
		"driver-not-loaded too": func(p *planted) {
			p.remove("proc/modules")
			p.write("lib/modules/6.1.0/modules.builtin", "kernel/drivers/infiniband/hw/mlx5/mlx5-ib.ko\n")
		},
		"no-ecn": func(p *planted) {
			p.write("sys/class/net/ethmem0/ecn/roce_np/enable/3", "1")
			p.write("sys/class/net/ethmem0/ecn/roce_np/enable/4", "0")
		},
	} {
		t.Run(code, func(t *testing.T) {
			l := newLab(t, verbstest.Switch(1, 1))
			with(l.hosts[0])
			r := l.hosts[0].look()
			assert.Empty(t, r.Findings, "%v", codes(r))
		})
	}
}

func TestCountersAreReadBeforeAndAfterAPortWritesToItself(t *testing.T) {
	l := newLab(t, verbstest.Switch(1, 1))
	l.hosts[0].write(port1+"/hw_counters/out_of_sequence", "5")
	counts("7")(l.hosts[0])
	p := l.hosts[0].look().Host.Devices[0].Ports[0]
	assert.Equal(t, map[string]int64{"out_of_sequence": 2}, p.SelfTest.Changes)
	assert.EqualValues(t, 7, p.Counters["out_of_sequence"])
}

func TestTwoPortsOfOneSubnetAreFound(t *testing.T) {
	l := newLab(t, verbstest.Topology{Hosts: 1, HCAs: 2, Nets: [][]verbstest.Port{{{Host: 0, HCA: 0}, {Host: 0, HCA: 1}}}, Switched: true})
	r := l.hosts[0].look()
	f := find(t, r, "shared-subnet", "")
	assert.Equal(t, doctor.Warning, f.Severity)
	assert.Contains(t, f.Seen, "mem0 (ethmem0) and mem1 (ethmem1) both have an address in 10.77.0.0/24")
	assert.Contains(t, f.Mend[0], "ip addr del 10.77.0.33/24 dev ethmem1")
}

func TestADownPortBesideAGoodOneIsANote(t *testing.T) {
	l := newLab(t, verbstest.Switch(2, 2))
	l.hosts[0].verbs.HCA(1).Link(false)
	r := l.hosts[0].look()
	assert.Equal(t, []string{"port-down of this host"}, codes(r))
	assert.Equal(t, doctor.Note, r.Findings[0].Severity)
}
