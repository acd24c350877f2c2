package rdma

import (
	"os"
	"regexp"
	"strconv"
	"strings"
)

// containers are the words for them in the paths of control groups.
var containers = regexp.MustCompile(`kubepods|docker|libpod|containerd|lxc|garden`)

func (s *System) place() Place {
	p := Place{WSL: strings.Contains(strings.ToLower(s.line("proc/version")), "microsoft")}
	switch {
	case s.there("var/run/secrets/kubernetes.io"):
		p.Container = "kubernetes"
	case s.there(".dockerenv"):
		p.Container = "docker"
	case s.there("run/.containerenv"):
		p.Container = "podman"
	default:
		p.Container = map[string]string{"kubepods": "kubernetes", "libpod": "podman"}[containers.FindString(s.line("proc/1/cgroup"))]
		if p.Container == "" {
			p.Container = containers.FindString(s.line("proc/1/cgroup"))
		}
	}
	p.Virtual = strings.Contains(s.line("proc/cpuinfo"), " hypervisor")
	if ids := strings.Fields(s.line("proc/self/uid_map")); len(ids) >= 3 {
		p.Rootless = ids[0] != "0" || ids[1] != "0" || ids[2] != "4294967295"
	}
	return p
}

// capLock is the bit of CAP_IPC_LOCK.
const capLock = 14

func (s *System) memlock() Memlock {
	var m Memlock
	m.Soft, m.Hard, m.Told = s.Limits()
	for text := range strings.Lines(s.line("proc/self/status")) {
		if rest, ok := strings.CutPrefix(text, "CapEff:"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			m.Lifted = err == nil && bits>>capLock&1 == 1
		}
	}
	return m
}

// nodes are the files of the devices that the kernel has, whether they are there or not, and those that are there besides.
func (s *System) nodes() []Node {
	list := []Node{}
	seen := map[string]bool{}
	add := func(name, device string) {
		if seen[name] {
			return
		}
		seen[name] = true
		path := s.path("dev/infiniband", name)
		n := Node{Path: "/dev/infiniband/" + name, Device: device, There: s.there("dev/infiniband", name)}
		n.Denied = n.There && os.IsPermission(s.May(path))
		list = append(list, n)
	}
	for _, name := range s.list("sys/class/infiniband_verbs") {
		if device := s.line("sys/class/infiniband_verbs", name, "ibdev"); device != "" {
			add(name, device)
		}
	}
	for _, name := range s.list("dev/infiniband") {
		if strings.HasPrefix(name, "uverbs") || name == "rdma_cm" {
			add(name, "")
		}
	}
	return list
}
