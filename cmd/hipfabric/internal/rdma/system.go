package rdma

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
	"github.com/hipfabric/hipfabric/verbs"
)

// System is where a host's facts come from.
type System struct {
	Only       []string // devices to look at; none: all
	Root       string   // of /sys, /proc, /dev and /lib: "/" but in tests
	Load       func() (*verbs.Library, error)
	Interfaces func() ([]machine.Interface, error)
	Limits     func() (soft, hard int64, told bool) // of locked memory, or NoLimit
	May        func(path string) error              // read and write that file
	Facts      func() machine.Facts
	Firewalls  func(context.Context) []string
	Name       func() (string, error)
}

// Here is this host. library is the file of libibverbs; "" for the one that the system's linker finds.
func Here(library string) *System {
	return &System{
		Root: "/", Load: func() (*verbs.Library, error) { return verbs.Open(verbs.Config{Library: library}) },
		Interfaces: machine.Interfaces, Limits: limits, May: may, Facts: machine.Read, Firewalls: machine.Firewalls, Name: os.Hostname,
	}
}

// Look collects the host's facts and tries each port that a group could use by itself.
func (s *System) Look(ctx context.Context) *Host {
	h := &Host{Facts: s.Facts(), Firewalls: s.Firewalls(ctx), Devices: []Device{}, Nodes: []Node{}}
	h.Name, _ = s.Name()
	h.Interfaces, _ = s.Interfaces()
	h.Place, h.Memlock = s.place(), s.memlock()
	h.Memlock.Lifted = h.Memlock.Lifted && !h.Place.Rootless
	h.Modules, h.Fixed = s.modules(h)
	h.IOMMU = s.iommu()
	h.Devices = s.kernelDevices()
	h.Nodes = s.nodes()
	s.ask(h)
	s.choose(h)
	for i := range h.Devices {
		d := &h.Devices[i]
		for j := range d.Ports {
			p := &d.Ports[j]
			s.addresses(h, p)
			p.Counters = s.counters(d.Name, p.Number)
		}
	}
	s.try(ctx, h)
	return h
}

// ask adds what libibverbs says, device by device.
func (s *System) ask(h *Host) {
	lib, err := s.Load() // anew for each use, which costs nothing once it is in the process
	if err != nil {
		var failed *verbs.LoadError
		h.NoLibrary = err.Error()
		h.Bare = runtime.GOOS != "linux" || errors.As(err, &failed) && strings.Contains(failed.Err.Error(), "cgo")
		return
	}
	h.Library = lib.Path()
	list, err := lib.Devices()
	if err != nil {
		h.NoDevice = err.Error()
		return
	}
	for _, d := range list {
		i := slices.IndexFunc(h.Devices, func(o Device) bool { return o.Name == d.Name() })
		if i < 0 {
			i = len(h.Devices)
			h.Devices = append(h.Devices, Device{Name: d.Name(), Ports: []Port{}})
		}
		h.Devices[i].open(d)
	}
}

// choose keeps the devices that were asked for.
func (s *System) choose(h *Host) {
	h.Absent, h.Others = []string{}, []string{}
	if len(s.Only) == 0 {
		return
	}
	kept := []Device{}
	for _, d := range h.Devices {
		if slices.Contains(s.Only, d.Name) {
			kept = append(kept, d)
		} else {
			h.Others = append(h.Others, d.Name)
		}
	}
	h.Devices = kept
	for _, name := range s.Only {
		if !slices.ContainsFunc(kept, func(d Device) bool { return d.Name == name }) {
			h.Absent = append(h.Absent, name)
		}
	}
}

func (s *System) path(parts ...string) string {
	return filepath.Join(append([]string{s.Root}, parts...)...)
}

// line is the content of a one-line file, "" when it cannot be read.
func (s *System) line(parts ...string) string {
	b, err := os.ReadFile(s.path(parts...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// list is the names in a folder, in order.
func (s *System) list(parts ...string) []string {
	entries, err := os.ReadDir(s.path(parts...))
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func (s *System) there(parts ...string) bool {
	_, err := os.Stat(s.path(parts...))
	return err == nil
}
