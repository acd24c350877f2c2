package roce

import (
	"cmp"
	"strconv"

	"github.com/hipfabric/hipfabric/fabric"
)

// Defaults and bounds of MailboxConfig.
const (
	DefaultMailboxBytes = 64 << 10
	MaxMailboxBytes     = 1 << 20
	mailChannel         = "mailbox"
)

// GPU is what a Mailbox needs of a device; hipgo.Seam satisfies it. As fabric/stage's Driver and Launcher, whose methods these are.
type GPU interface {
	String() string
	AllocHost(bytes int) (mem []byte, device uintptr, err error)
	FreeHost(mem []byte) error
	AllocDevice(bytes int) (uintptr, error) // zeroed
	FreeDevice(p uintptr) error
	Inspect(p uintptr, bytes int) (host bool, err error)
	OpenStream(eventOnly bool) (stream, event uintptr, private bool, err error)
	CloseStream(stream, event uintptr) error
	Record(stream, event uintptr) error
	Query(event uintptr) (bool, error)
	Capturing(stream uintptr) (bool, error)
	Clock() int // kHz; 0 where it is unknown
	Load(image []byte, names ...string) (module uintptr, functions []uintptr, err error)
	Unload(module uintptr) error
	Launch(stream, function uintptr, blocks, threads int, args []byte) error
}

// MailboxConfig says what a Mailbox is made of.
type MailboxConfig struct {
	// RoCE is of its queue pairs: Group, Channel ("mailbox"), HCAs, Stripes, TrafficClass, Retries, PacketTimeout, Timeout, SpinFor, Yield,
	// CPUs, Order, Addresses, Failed and Logger mean what they do there. There are no rings, and no checksums: the other fields are not used.
	RoCE Config
	GPU  GPU
	// Image is the kernels' code: csrc/mailbox's, Image or PTX by the kind of device. Copied.
	Image []byte
	// Rest moves what the mailbox does not: fabric/stage over a Transport of this package, for one, of the same ranks and on the same device.
	// The Mailbox owns it once it is open; where opening fails it is the caller's still, and as good as before.
	Rest fabric.StreamTransport
	// SlotBytes is the most that a call may have of a rank to go by the mailbox, a multiple of 4096 and at most MaxMailboxBytes, the same on
	// all ranks; 0 is DefaultMailboxBytes. A rank pins six times as much for each rank of the group.
	SlotBytes int
	Arbiter   fabric.Arbiter // settles the group's one cause; nil: this rank's first failure is it
}

func (c *MailboxConfig) validate() error {
	if err := c.RoCE.Validate(); err != nil {
		return err
	}
	switch {
	case c.Rest == nil:
		return fabric.Invalidf("a mailbox needs a Rest, which moves the calls that it does not")
	case c.GPU == nil:
		return fabric.Invalidf("a mailbox needs a GPU")
	case len(c.Image) == 0:
		return fabric.Invalidf("Image is empty; the mailbox needs the kernels' code")
	case c.SlotBytes < 0 || c.SlotBytes > MaxMailboxBytes || c.SlotBytes%pageBytes != 0:
		return fabric.Invalidf("the mailbox's SlotBytes is %d; a multiple of %d, at most %d, or 0 for %d", c.SlotBytes, pageBytes, MaxMailboxBytes, DefaultMailboxBytes)
	}
	c.SlotBytes = cmp.Or(c.SlotBytes, DefaultMailboxBytes)
	return nil
}

// queuePairs is the Config that these are made by. Their rings are not used but for notes; Slots says how many requests and receives
// there is room for.
func (c *MailboxConfig) queuePairs() Config {
	q := c.RoCE
	q.Channel = cmp.Or(q.Channel, mailChannel)
	q.Slots, q.SlotBytes, q.EagerBytes, q.Verify = 2*MinSlots, line/2, line/2, false
	q.more = []setting{{"Mailbox.SlotBytes", strconv.Itoa(c.SlotBytes)}}
	return q.withDefaults()
}
