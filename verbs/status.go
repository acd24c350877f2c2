package verbs

import "fmt"

// Status is a completion's.
type Status uint32

// The statuses that code decides on; String knows all.
const (
	StatusSuccess          Status = 0
	StatusLocalLength      Status = 1
	StatusLocalOperation   Status = 2
	StatusLocalProtection  Status = 4
	StatusFlushed          Status = 5
	StatusRemoteInvalid    Status = 9
	StatusRemoteAccess     Status = 10
	StatusRemoteOperation  Status = 11
	StatusRetryExceeded    Status = 12 // the peer, or the way to it, is gone
	StatusRNRRetryExceeded Status = 13 // the peer had no receive posted
	StatusRemoteAborted    Status = 16
	StatusFatal            Status = 19
	StatusResponseTimeout  Status = 20
	StatusGeneral          Status = 21
)

// String is libibverbs' text.
//
// Implements: const char *ibv_wc_status_str(enum ibv_wc_status status)
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("unknown status %d", uint32(s))
}

var statusNames = [...]string{
	"success",
	"local length error",
	"local QP operation error",
	"local EE context operation error",
	"local protection error",
	"Work Request Flushed Error",
	"memory management operation error",
	"bad response error",
	"local access error",
	"remote invalid request error",
	"remote access error",
	"remote operation error",
	"transport retry counter exceeded",
	"RNR retry counter exceeded",
	"local RDD violation error",
	"remote invalid RD request",
	"aborted error",
	"invalid EE context number",
	"invalid EE context state",
	"fatal error",
	"response timeout error",
	"general error",
	"TM error",
	"TM software rendezvous",
}
