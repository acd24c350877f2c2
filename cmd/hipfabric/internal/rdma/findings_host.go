package rdma

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
)

// overTCP ends what says that there is no RDMA: it is no reason to despair.
const overTCP = "groups of this host go over TCP"

func noLibrary(e side) []doctor.Finding {
	switch {
	case e.Place.WSL && len(e.Devices)+len(e.Others) == 0:
		return one(doctor.Finding{Code: "wsl", Severity: doctor.Error, Seen: "this is WSL, whose kernel has no RDMA and gets none of Windows' devices", Bound: "Linux itself, or a virtual machine that has the NIC",
			Why: overTCP, Mend: []string{"boot Linux on the machine, or pass the NIC to a virtual machine with Linux: WSL cannot have it"}})
	case e.NoLibrary == "":
		return nil
	case e.Bare && !strings.HasPrefix(e.OS, "linux"):
		return one(doctor.Finding{Code: "unsupported-system", Severity: doctor.Error, Seen: "RDMA is not supported on " + e.OS, Bound: "Linux", Why: overTCP,
			Mend: []string{"run it on Linux"}})
	case e.Bare:
		return one(doctor.Finding{Code: "bare-build", Severity: doctor.Error, Seen: "this hipfabric is built without what loads libibverbs", Bound: "a build with cgo, without the tag noverbs",
			Why: "libibverbs is a C library; what is said here of devices is the kernel's word alone", Mend: []string{"apt-get install gcc libibverbs-dev && make build"}})
	}
	return one(doctor.Finding{Code: "no-library", Severity: doctor.Error, Seen: e.NoLibrary, Bound: "libibverbs of rdma-core 2.0 or newer, with the provider of the device",
		Why: "programs reach RDMA devices by it", Mend: []string{"apt-get install libibverbs1 ibverbs-providers      (Debian, Ubuntu)", "dnf install libibverbs      (Fedora, RHEL)"}})
}

func noDevice(e side) []doctor.Finding {
	if len(e.Devices)+len(e.Others) > 0 || e.Place.WSL || len(e.asleep()) > 0 || e.OS != "" && !strings.HasPrefix(e.OS, "linux") {
		return nil
	}
	f := doctor.Finding{Code: "no-device", Severity: doctor.Error, Seen: "the kernel has no RDMA device", Bound: "an RDMA NIC and its driver", Mend: []string{"lspci -nn | grep -Ei 'ethernet|infiniband'      (is there an RDMA NIC?)"}}
	var names []string
	netdev := "eth0"
	for _, i := range e.Interfaces {
		if !i.Loopback && i.Driver != "" && (i.Up || len(i.Addresses) > 0) {
			names = append(names, i.Name+" ("+i.Driver+")")
			if i.Up && len(i.Addresses) > 0 && !i.Container {
				netdev = i.Name
			}
		}
	}
	f.Why = "no interface is there whose driver does RDMA; " + overTCP
	if len(names) > 0 {
		f.Why = "of the interfaces, none has a driver that does RDMA: " + strings.Join(names, ", ") + "; " + overTCP
	}
	if e.Place.Container != "" {
		f.Mend = append(f.Mend, "ls /sys/class/infiniband      (on the container's host: what is there can be given to it with --device=/dev/infiniband --network=host)")
	}
	if e.Place.Virtual {
		f.Mend = append(f.Mend, "on the virtual machine's host: pass the NIC, or a virtual function of it, through")
	}
	if state := e.Modules[soft]; state == Available || state == Loaded || state == NotTold {
		f.Mend = append(f.Mend, fmt.Sprintf("modprobe %s && rdma link add rxe0 type rxe netdev %s      (soft RoCE: to try it without an RDMA NIC)", soft, netdev))
	}
	return one(f)
}

// absent finds devices that were asked for by name, where there are others.
func absent(e side) []doctor.Finding {
	if len(e.Absent) == 0 || len(e.Devices)+len(e.Others) == 0 {
		return nil
	}
	there := append([]string{}, e.Others...)
	for _, d := range e.Devices {
		there = append(there, d.Name)
	}
	slices.Sort(there)
	var found []doctor.Finding
	for _, name := range e.Absent {
		f := doctor.Finding{Code: "unknown-device", Severity: doctor.Error, Seen: "there is no device " + name, Bound: "a device that is there: " + strings.Join(there, ", "), Why: "it was asked for by its name"}
		meant := nearest(name, there)
		if meant == "" {
			meant = strings.Join(there, ",")
		} else {
			f.Seen += "; did you mean " + meant + "?"
		}
		f.Mend = []string{"hipfabric doctor rdma --device " + meant}
		found = append(found, f)
	}
	return found
}

// asleep are the drivers of interfaces that could do RDMA, and whose part for it is not loaded.
func (h *Host) asleep() map[string]string {
	found := map[string]string{}
	for _, i := range h.Interfaces {
		if module := companion(i.Driver); module != "" && h.Modules[module] != Loaded && h.Modules[module] != "" {
			found[i.Name] = module
		}
	}
	return found
}

func driverNotLoaded(e side) []doctor.Finding {
	severity := doctor.Warning
	if len(e.Devices)+len(e.Others) == 0 {
		severity = doctor.Error
	}
	var found []doctor.Finding
	told := map[string]bool{}
	asleep := e.asleep()
	for _, i := range e.Interfaces {
		module := asleep[i.Name]
		if module == "" || told[module] {
			continue
		}
		told[module] = true
		mend := []string{"modprobe " + module}
		if e.Modules[module] == Missing {
			mend = []string{fmt.Sprintf("apt-get install linux-modules-extra-%s && modprobe %s      (Ubuntu; elsewhere the kernel's package of further modules)", orWord(e.Kernel, "$(uname -r)"), module)}
		}
		if e.Place.Container != "" {
			mend[0] += "      (on the container's host)"
		}
		found = append(found, doctor.Finding{Code: "driver-not-loaded", Severity: severity, Seen: fmt.Sprintf("%s is driven by %s, and its RDMA part, %s, is not loaded (%s)", i.Name, i.Driver, module, e.Modules[module]),
			Bound: module + " loaded", Why: "without it the NIC is an Ethernet interface and no more", Mend: mend})
	}
	return found
}

// notListed finds devices that the kernel has and libibverbs does not.
func notListed(e side) []doctor.Finding {
	if e.NoLibrary != "" {
		return nil
	}
	var found []doctor.Finding
	for _, d := range e.Devices {
		if d.Listed {
			continue
		}
		f := doctor.Finding{Code: "not-listed", Severity: doctor.Error, Seen: fmt.Sprintf("the kernel has %s (%s), and libibverbs does not list it", d.Name, orWord(d.Driver, "driver not told")), Bound: "listed",
			Why: "the library has no provider for it", Mend: []string{"apt-get install ibverbs-providers      (Debian, Ubuntu)", "dnf install libibverbs      (Fedora, RHEL)"}}
		if !slices.ContainsFunc(e.Nodes, func(n Node) bool { return n.Device == d.Name }) {
			f.Why = "ib_uverbs, by which programs reach devices, is not loaded"
			f.Mend = []string{"modprobe ib_uverbs"}
		}
		found = append(found, f)
	}
	return found
}

// node is the file of a device, as far as it is known.
func (h *Host) node(device string) Node {
	if i := slices.IndexFunc(h.Nodes, func(n Node) bool { return n.Device == device }); i >= 0 {
		return h.Nodes[i]
	}
	return Node{Path: "/dev/infiniband/uverbs*", Device: device, There: true}
}

func noNode(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, d := range e.Devices {
		n := e.node(d.Name)
		if n.There && d.Cause != CauseNode {
			continue
		}
		f := doctor.Finding{Code: "no-device-node", Severity: doctor.Error, Seen: fmt.Sprintf("%s has no file here: %s", d.Name, n.Path), Bound: "the file, readable and writable", Why: "programs reach the device by it",
			Mend: []string{"modprobe ib_uverbs && udevadm trigger --subsystem-match=infiniband_verbs"}}
		switch e.Place.Container {
		case "":
		case "kubernetes":
			f.Mend = []string{"an RDMA device plugin, and its resource in the pod's limits      (a hostPath of /dev/infiniband needs privileged: true)"}
		default:
			f.Mend = []string{e.run()}
		}
		found = append(found, f)
	}
	return found
}

// run is how a container is started for RDMA.
func (h *Host) run() string {
	program := "docker"
	if h.Place.Container == "podman" {
		program = "podman"
	}
	return program + " run --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1 --network=host ..."
}

func noPermission(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, d := range e.Devices {
		n := e.node(d.Name)
		if !n.Denied && d.Cause != CausePermission {
			continue
		}
		f := doctor.Finding{Code: "no-permission", Severity: doctor.Error, Seen: fmt.Sprintf("this user may not use %s, the file of %s", n.Path, d.Name), Bound: "read and write",
			Why: "programs reach the device by it", Mend: []string{fmt.Sprintf("chmod 0666 %s      (until the next boot)", n.Path),
				`echo 'KERNEL=="uverbs*", MODE="0666"' > /etc/udev/rules.d/90-rdma.rules && udevadm trigger --subsystem-match=infiniband_verbs`}}
		if e.Place.Container != "" {
			f.Mend = append([]string{e.run()}, f.Mend...)
		}
		found = append(found, f)
	}
	return found
}

func notOpened(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, d := range e.Devices {
		if d.Failed != "" && d.Cause == CauseOther || d.Cause == CauseWay {
			found = append(found, doctor.Finding{Code: "device-failed", Severity: doctor.Error, Seen: d.Failed, Bound: "it opens", Why: "the device or its driver is in trouble",
				Mend: []string{"dmesg | grep -i " + orWord(d.Driver, d.Name) + " | tail      (then load the driver again, or boot)"}})
		}
	}
	return found
}

// enoughMemlock is what a group may register without a thought: slots and an engine's buffers.
const enoughMemlock = 1 << 30

func memlock(e side) []doctor.Finding {
	refused := ""
	for _, d := range e.Devices {
		if d.Cause == CauseMemlock {
			refused = d.Failed
		}
		for _, p := range d.Ports {
			if p.SelfTest != nil && p.SelfTest.Cause == CauseMemlock {
				refused = p.SelfTest.Failed
			}
		}
	}
	m := e.Memlock
	low := m.Told && !m.Lifted && m.Soft != NoLimit && m.Soft < enoughMemlock && len(e.Devices) > 0
	if refused == "" && !low {
		return nil
	}
	f := doctor.Finding{Code: "memlock", Severity: doctor.Warning, Seen: fmt.Sprintf("this process may lock %d bytes (ulimit -l)", m.Soft), Bound: "no limit, or all that groups register: their slots, and the memory that engines take of them",
		Why: "memory that a NIC reads and writes is locked", Mend: []string{}}
	if refused != "" {
		f.Severity = doctor.Error
		f.Seen = "memory could not be registered: " + refused
	}
	if e.Place.Container != "" {
		f.Mend = append(f.Mend, e.run())
	} else if m.Hard == NoLimit {
		f.Mend = append(f.Mend, "ulimit -l unlimited      (in the shell that starts it)")
	}
	if e.Place.Rootless {
		f.Why += "; CAP_IPC_LOCK, which lifts the limit, does not count in a user namespace"
	}
	f.Mend = append(f.Mend, "echo '* - memlock unlimited' >> /etc/security/limits.conf      (then log in again)", "LimitMEMLOCK=infinity      (in the unit, where systemd starts it)")
	return one(f)
}

func orWord(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
