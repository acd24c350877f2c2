package rdma

import (
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
)

// Schema names the form of a Report's JSON.
const Schema = "hipfabric.doctor.rdma/1"

// Report is all that was seen, from this host's side, and what it means.
type Report struct {
	Schema   string           `json:"schema"`
	Date     string           `json:"date"`
	Host     Host             `json:"host"`
	Reach    []Reach          `json:"reach"`   // the ways to the peers that were asked for
	Meeting  *Meeting         `json:"meeting"` // null when no listening host was asked
	Findings []doctor.Finding `json:"findings"`
}

// Host is what one host has. A fact that its system does not tell is zero, where no other value is named.
type Host struct {
	Name string `json:"name"`
	machine.Facts
	Place      Place               `json:"place"`
	Library    string              `json:"library"`    // the libibverbs that was loaded
	NoLibrary  string              `json:"no_library"` // why none was; "" when one was
	Bare       bool                `json:"bare"`       // this program is built without what loads one
	NoDevice   string              `json:"no_device"`  // why the library lists no device; "" when it lists one
	Memlock    Memlock             `json:"memlock"`
	Modules    map[string]string   `json:"modules"` // by name: Loaded, Available, Missing or NotTold
	Fixed      bool                `json:"fixed"`   // the kernel loads no modules
	Nodes      []Node              `json:"nodes"`
	IOMMU      string              `json:"iommu"` // "off", "passthrough", "on"
	Devices    []Device            `json:"devices"`
	Absent     []string            `json:"absent"` // devices that were asked for and are not here
	Others     []string            `json:"others"` // devices that are here and were not asked for
	Interfaces []machine.Interface `json:"interfaces"`
	Firewalls  []string            `json:"firewalls"`
}

// Place is where the program runs.
type Place struct {
	WSL       bool   `json:"wsl"`
	Container string `json:"container"` // "docker", "podman", "kubernetes", ...; "" for none that is known
	Virtual   bool   `json:"virtual"`   // a virtual machine
	Rootless  bool   `json:"rootless"`  // in a user namespace, whose root has no rights outside
}

// NoLimit is a Memlock without one.
const NoLimit = -1

// Memlock is how much memory the process may lock, in bytes.
type Memlock struct {
	Told   bool  `json:"told"`
	Soft   int64 `json:"soft"` // NoLimit, as Hard
	Hard   int64 `json:"hard"`
	Lifted bool  `json:"lifted"` // CAP_IPC_LOCK: the limit does not count
}

// The states of a kernel module.
const (
	Loaded    = "loaded" // or built in
	Available = "available"
	Missing   = "missing"
	NotTold   = "not told"
)

// Node is a device's file, by which programs reach it.
type Node struct {
	Path   string `json:"path"`
	Device string `json:"device"` // "" for rdma_cm
	There  bool   `json:"there"`
	Denied bool   `json:"denied"` // this user may not read and write it
}

// Device is an HCA.
type Device struct {
	Name     string `json:"name"`
	Listed   bool   `json:"listed"` // by libibverbs
	Firmware string `json:"firmware"`
	Driver   string `json:"driver"`   // the kernel's
	Software bool   `json:"software"` // a driver over an ordinary interface: rxe, siw
	Foreign  bool   `json:"foreign"`  // it does not speak InfiniBand's transport, which RoCE is: iWARP, EFA
	Failed   string `json:"failed"`   // why it does not open; "" when it does
	Cause    string `json:"cause"`    // what kind of failure that is: CausePermission, CauseNode, CauseOther
	PCI      *PCI   `json:"pci"`      // null where it is on no such bus
	Ports    []Port `json:"ports"`
}

// The kinds of a failure.
const (
	CausePermission = "permission"
	CauseNode       = "node"
	CauseMemlock    = "memlock"
	CauseWay        = "way" // the work was posted and did not get through
	CauseOther      = "other"
)

// PCI is a device's place on the bus.
type PCI struct {
	Address  string   `json:"address"`
	GTs      float64  `json:"gts"` // a lane, as negotiated
	Lanes    int      `json:"lanes"`
	MaxGTs   float64  `json:"max_gts"` // that the device can
	MaxLanes int      `json:"max_lanes"`
	NUMA     int      `json:"numa"`      // -1 when not told
	IOMMU    string   `json:"iommu"`     // the type of its group: "identity", "DMA", "DMA-FQ"; "" without one
	Redirect []string `json:"redirects"` // the bridges above whose ACS sends traffic between devices through the root
	ACSTold  bool     `json:"acs_told"`  // this user may see it
}

// Gbps is what the bus carries in each direction, in Gb/s, before its own headers; 0 when not told.
func (p *PCI) Gbps() float64 {
	if p == nil {
		return 0
	}
	coding := 128. / 130
	if p.GTs <= 5 {
		coding = 8. / 10
	}
	return p.GTs * float64(p.Lanes) * coding
}

// Port is a device's port.
type Port struct {
	Number   int              `json:"number"`
	State    string           `json:"state"` // "active", "down", ...
	Physical string           `json:"physical"`
	Link     string           `json:"link"`    // "Ethernet", "InfiniBand"
	MTU      int              `json:"mtu"`     // active, bytes of payload a packet; 0 when not told
	MaxMTU   int              `json:"max_mtu"` // that the port can
	Gbps     float64          `json:"gbps"`    // the link's rate in Gb/s
	NetDev   string           `json:"netdev"`
	ECN      string           `json:"ecn"`    // "on", "off"; "" when the driver tells it nowhere
	Slots    int              `json:"slots"`  // of the GID table
	GIDs     []GID            `json:"gids"`   // of the slots that are taken
	Chosen   int              `json:"chosen"` // the index of the GID that a group takes; -1: none can be used
	Why      string           `json:"why"`    // of that choice
	SelfTest *SelfTest        `json:"self_test"`
	Counters map[string]int64 `json:"counters"` // by the system's names
	Changes  map[string]int64 `json:"changes"`  // of them, while queue pairs were tried
}

// Active says that the link is up.
func (p Port) Active() bool { return p.State == "active" }

// GID is a port's address.
type GID struct {
	Index   int    `json:"index"`
	Type    string `json:"type"` // "RoCE v2", "RoCE v1", "InfiniBand"
	GID     string `json:"gid"`
	Address string `json:"address"` // as an IP address
	Bits    int    `json:"bits"`    // of the address's prefix on its interface; 0 when it is on none of this network namespace
	NetDev  string `json:"netdev"`
}

// SelfTest are writes of a port to itself.
type SelfTest struct {
	Failed string `json:"failed"` // why they did not succeed; "" when they did
	Cause  string `json:"cause"`
	Trips
	Changes map[string]int64 `json:"changes"` // of the port's counters meanwhile, which its Counters have
}

// Trips are the times from a write with immediate to the answer by another.
type Trips struct {
	Bytes   int     `json:"bytes"`
	Samples int     `json:"samples"`
	Wrong   int     `json:"wrong"` // messages with bytes that were not sent
	MinUs   float64 `json:"min_us"`
	P50Us   float64 `json:"p50_us"`
	P99Us   float64 `json:"p99_us"`
	MaxUs   float64 `json:"max_us"`
}

// Reach is the way to an address, as far as this host alone can tell.
type Reach struct {
	Peer      string `json:"peer"`
	From      string `json:"from"`      // the address that this host would come from; "" when it has no route
	Interface string `json:"interface"` // that has it
	Device    string `json:"device"`    // whose port that interface is; "" for none
	Port      int    `json:"port"`
	Subnet    string `json:"subnet"`    // of the port, that has the peer; "" for none
	Neighbour string `json:"neighbour"` // on the link: "answers" or "silent"; "" when not known
	Answers   bool   `json:"answers"`   // to a small packet
	Size      int    `json:"size"`      // bytes of the largest packet of a group; 0 when not known
	Fits      string `json:"fits"`      // such a packet, not to be fragmented: "passes", "lost", "too large here"; "" when not known
	PathMTU   int    `json:"path_mtu"`  // as the kernel knows it
}

// Meeting is what two hosts tried.
type Meeting struct {
	Peer       string `json:"peer"`        // host:port, as asked for
	FarCommand string `json:"far_command"` // that makes the peer listen there
	Missed     string `json:"missed"`      // why the peer was not met: Unauthorized, Mismatch, Busy, NotMet; "" when it was
	Text       string `json:"text"`        // of that
	CutShort   string `json:"cut_short"`   // why what follows is incomplete; "" when it is not
	Address    string `json:"address"`     // of the TCP connection's end here
	FarAddress string `json:"far_address"` // and there
	Far        *Host  `json:"far"`         // null when it was not met
	Rails      []Rail `json:"rails"`
}

// The reasons why a peer is not met.
const (
	Unauthorized = "unauthorized" // another secret, or another kind of group
	Mismatch     = "mismatch"     // another version
	Busy         = "busy"         // another host is with it
	NotMet       = "not-met"
)

// Rail is a way between two ports that was tried.
type Rail struct {
	Near   RailEnd `json:"near"`
	Far    RailEnd `json:"far"`
	MTU    int     `json:"mtu"`   // the smaller of both
	Guess  bool    `json:"guess"` // the addresses do not say whether the two are joined
	Trips  []Trips `json:"trips"`
	Failed string  `json:"failed"` // "" when all got through
	Step   string  `json:"step"`   // at which it failed: StepOpen, StepConnect, StepSmall, StepLarge
	Cause  string  `json:"cause"`
}

// The steps of a rail's trial.
const (
	StepOpen    = "open"
	StepConnect = "connect"
	StepSmall   = "small" // messages of one packet
	StepLarge   = "large" // and of many full ones
)

// RailEnd is one end of a rail.
type RailEnd struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
	Index  int    `json:"index"` // of the GID
	GID    string `json:"gid"`
	MTU    int    `json:"mtu"`
	NetDev string `json:"netdev"`
}
