package verbs

import (
	"fmt"
	"math"
	"time"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// State is a queue pair's.
type State uint32

// The states of queue pairs.
const (
	StateReset State = 0
	StateInit  State = 1
	StateRTR   State = 2 // ready to receive
	StateRTS   State = 3 // ready to send
	StateSQD   State = 4
	StateSQE   State = 5
	StateErr   State = 6
)

func (s State) String() string {
	if names := [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}; int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", uint32(s))
}

// Endpoint is what a peer must know of a queue pair, and we of its.
type Endpoint struct {
	QPN uint32
	PSN uint32 // the number of its first packet, 24 bits
	GID GID    // RoCE's address; zero on InfiniBand within a subnet
	LID uint16 // InfiniBand's address
}

// Connection is a queue pair's way to its peer. Remote and GIDIndex must be given; zero has a default elsewhere, and -1 stands for 0
// where 0 is a value.
type Connection struct {
	Remote       Endpoint
	PSN          uint32        // of our first packet, 24 bits: what the peer has as Remote.PSN
	Port         int           // ours; 0: 1
	GIDIndex     int           // ours, in Port's table: no index is right everywhere
	PKeyIndex    int           // in Port's table
	Access       Access        // what the peer may do; 0: write and read
	MTU          int           // bytes, 256 to 4096, alike on both ends; 0: Port's active MTU
	Timeout      time.Duration // for an acknowledgement, before a packet is sent again; 0: 67 ms. Rounded up to 4.096 us times a power of 2
	Retries      int           // so many times; 0: 6; -1: none; at most 7, which some devices take for ever
	RNRRetries   int           // times a peer without a receive is asked again; 0: 6; -1: none; 7: for ever
	RNRTimer     time.Duration // what we, without a receive, ask a peer to wait; 0: 640 us. Rounded up to one of the device's steps
	ReadsOut     int           // our reads at a time; 0: 1; at most the device's MaxReadsOut
	ReadsIn      int           // the peer's; 0: 1; at most the device's MaxReadsIn
	HopLimit     int           // 0: 64. On RoCE Linux may take the route's own instead
	TrafficClass int           // of the IP header: DSCP times 4, plus ECN
	FlowLabel    uint32        // 20 bits
	ServiceLevel int           // 0 to 15
}

const (
	defaultTimeout  = 14 // 4.096 us << 14
	defaultRetries  = 6
	defaultRNRTimer = 640 * time.Microsecond
	defaultHops     = 64
)

// withDefaults is the connection as a device gets it.
func (k Connection) withDefaults() Connection {
	k.Port = orDefault(k.Port, 1)
	if k.Access == 0 {
		k.Access = AccessRemoteWrite | AccessRemoteRead
	}
	if k.Timeout == 0 {
		k.Timeout = timeoutOf(defaultTimeout)
	}
	k.Retries, k.RNRRetries = orDefault(k.Retries, defaultRetries), orDefault(k.RNRRetries, defaultRetries)
	if k.RNRTimer == 0 {
		k.RNRTimer = defaultRNRTimer
	}
	k.ReadsOut, k.ReadsIn = orDefault(k.ReadsOut, 1), orDefault(k.ReadsIn, 1)
	k.HopLimit = orDefault(k.HopLimit, defaultHops)
	return k
}

// validate names the field, its value and its bound.
func (k Connection) validate(c *Context) error {
	for _, n := range []struct {
		field   string
		v, most int
	}{
		{"Remote.QPN", int(k.Remote.QPN), 1<<24 - 1}, {"Remote.PSN", int(k.Remote.PSN), 1<<24 - 1}, {"PSN", int(k.PSN), 1<<24 - 1},
		{"GIDIndex", k.GIDIndex, math.MaxUint8}, {"PKeyIndex", k.PKeyIndex, math.MaxUint16}, {"Retries", k.Retries, 7},
		{"RNRRetries", k.RNRRetries, 7}, {"ReadsOut", k.ReadsOut, c.attr.MaxReadsOut}, {"ReadsIn", k.ReadsIn, c.attr.MaxReadsIn},
		{"HopLimit", k.HopLimit, math.MaxUint8}, {"TrafficClass", k.TrafficClass, math.MaxUint8},
		{"FlowLabel", int(k.FlowLabel), 1<<20 - 1}, {"ServiceLevel", k.ServiceLevel, 15},
	} {
		if n.v < 0 || n.v > n.most {
			return invalid("Connection.%s is %d: 0 to %d", n.field, n.v, n.most)
		}
	}
	switch {
	case k.Timeout < 0 || k.Timeout > timeoutOf(maxTimeout):
		return invalid("Connection.Timeout is %v: 0 to %v", k.Timeout, timeoutOf(maxTimeout))
	case k.RNRTimer < 0 || k.RNRTimer > longestRNR:
		return invalid("Connection.RNRTimer is %v: 0 to %v", k.RNRTimer, longestRNR)
	case k.MTU != 0 && mtuNumber(k.MTU) == 0:
		return invalid("Connection.MTU is %d: 256, 512, 1024, 2048, 4096, or 0 for the port's", k.MTU)
	}
	return c.checkPort(k.Port)
}

// bits of enum ibv_qp_attr_mask.
const (
	maskState      = 1 << 0
	maskAccess     = 1 << 3
	maskPKey       = 1 << 4
	maskPort       = 1 << 5
	maskAddress    = 1 << 7
	maskMTU        = 1 << 8
	maskTimeout    = 1 << 9
	maskRetries    = 1 << 10
	maskRNRRetries = 1 << 11
	maskRecvPSN    = 1 << 12
	maskReadsOut   = 1 << 13
	maskRNRTimer   = 1 << 15
	maskSendPSN    = 1 << 16
	maskReadsIn    = 1 << 17
	maskPeer       = 1 << 20
)

// Init takes the queue pair from reset to INIT: receives can be posted. Of k it uses Port, PKeyIndex and Access, and checks all.
//
// Implements: int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
func (q *QP) Init(k Connection) error {
	k = k.withDefaults()
	if err := k.validate(q.c); err != nil {
		return err
	}
	a := driver.QPAttr{State: uint32(StateInit), Port: uint32(k.Port), PKeyIndex: uint32(k.PKeyIndex), Access: uint32(k.Access)}
	return q.move(&a, maskState|maskPKey|maskPort|maskAccess)
}

// ReadyToReceive takes it from INIT to RTR: what the peer sends arrives. Errors: one that says that there is no way from our GID to
// the peer's.
//
// Implements: int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
func (q *QP) ReadyToReceive(k Connection) error {
	k = k.withDefaults()
	if err := k.validate(q.c); err != nil {
		return err
	}
	if k.MTU == 0 {
		port, err := q.c.Port(k.Port)
		if err != nil {
			return err
		}
		k.MTU = port.ActiveMTU
	}
	a := driver.QPAttr{
		State: uint32(StateRTR), Port: uint32(k.Port), MTU: mtuNumber(k.MTU), DestQPN: k.Remote.QPN, RQPSN: k.Remote.PSN,
		MaxReadsIn: uint32(k.ReadsIn), MinRNRTimer: rnrCode(k.RNRTimer), SGIDIndex: uint32(k.GIDIndex), GID: k.Remote.GID,
		HopLimit: uint32(k.HopLimit), TrafficClass: uint32(k.TrafficClass), FlowLabel: k.FlowLabel, DLID: uint32(k.Remote.LID), SL: uint32(k.ServiceLevel),
	}
	if !k.Remote.GID.IsZero() {
		a.Global = 1
	}
	err := q.modify(&a, maskState|maskAddress|maskMTU|maskPeer|maskRecvPSN|maskReadsIn|maskRNRTimer)
	if err != nil {
		return fmt.Errorf("verbs: queue pair %#x from GID index %d of port %d to %s: %w", q.number, k.GIDIndex, k.Port, k.Remote.GID, err)
	}
	return nil
}

// ReadyToSend takes it from RTR to RTS: what is posted is sent. Of k it uses PSN, Timeout, Retries, RNRRetries and ReadsOut.
//
// Implements: int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
func (q *QP) ReadyToSend(k Connection) error {
	k = k.withDefaults()
	if err := k.validate(q.c); err != nil {
		return err
	}
	a := driver.QPAttr{
		State: uint32(StateRTS), SQPSN: k.PSN, Timeout: timeoutCode(k.Timeout), RetryCount: uint32(k.Retries), RNRRetry: uint32(k.RNRRetries),
		MaxReadsOut: uint32(k.ReadsOut),
	}
	return q.move(&a, maskState|maskSendPSN|maskTimeout|maskRetries|maskRNRRetries|maskReadsOut)
}

// Connect is Init, ReadyToReceive and ReadyToSend. Where the peer may send at once, it must be ready to receive before.
func (q *QP) Connect(k Connection) error {
	for _, step := range []func(Connection) error{q.Init, q.ReadyToReceive, q.ReadyToSend} {
		if err := step(k); err != nil {
			return err
		}
	}
	return nil
}

// Fail moves the queue pair to ERR: all that is posted completes as ErrFlushed, and nothing of it touches memory once it has.
//
// Implements: int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
func (q *QP) Fail() error { return q.move(&driver.QPAttr{State: uint32(StateErr)}, maskState) }

// Reset moves it to reset, without completions, to be connected anew: Err is nil again. What failed before and is polled after it still
// counts, so poll the CQ until it is empty first.
//
// Implements: int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
func (q *QP) Reset() error {
	err := q.move(&driver.QPAttr{State: uint32(StateReset)}, maskState)
	if err == nil {
		q.noted.Lock()
		q.cause = nil
		q.noted.Unlock()
	}
	return err
}

// move is modify, and its error names the queue pair and the state.
func (q *QP) move(a *driver.QPAttr, mask uint32) error {
	if err := q.modify(a, mask); err != nil {
		return fmt.Errorf("verbs: queue pair %#x to %s: %w", q.number, State(a.State), err)
	}
	return nil
}

func (q *QP) modify(a *driver.QPAttr, mask uint32) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.mu.Unlock()
	return q.c.check("ibv_modify_qp", q.c.t.ModifyQP(q.h, a, mask))
}

// Query asks for the state and, of a connected one, its connection, as the device has it.
//
// Implements: int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask, struct ibv_qp_init_attr *init_attr)
func (q *QP) Query() (State, Connection, error) {
	if err := q.enter(); err != nil {
		return 0, Connection{}, err
	}
	defer q.mu.Unlock()
	a, e := q.c.t.QueryQP(q.h, maskState|maskAddress|maskMTU|maskPeer|maskRecvPSN|maskReadsIn|maskRNRTimer|
		maskSendPSN|maskTimeout|maskRetries|maskRNRRetries|maskReadsOut|maskPKey|maskPort|maskAccess)
	if e != 0 {
		return 0, Connection{}, q.c.fault("ibv_query_qp", e)
	}
	return State(a.State), Connection{
		Remote: Endpoint{QPN: a.DestQPN, PSN: a.RQPSN, GID: a.GID, LID: uint16(a.DLID)}, PSN: a.SQPSN, Port: int(a.Port),
		GIDIndex: int(a.SGIDIndex), PKeyIndex: int(a.PKeyIndex), Access: Access(a.Access), MTU: mtuBytes(a.MTU),
		Timeout: timeoutOf(a.Timeout), Retries: int(a.RetryCount), RNRRetries: int(a.RNRRetry), RNRTimer: rnrTimer(a.MinRNRTimer),
		ReadsOut: int(a.MaxReadsOut), ReadsIn: int(a.MaxReadsIn), HopLimit: int(a.HopLimit), TrafficClass: int(a.TrafficClass),
		FlowLabel: a.FlowLabel, ServiceLevel: int(a.SL),
	}, nil
}
