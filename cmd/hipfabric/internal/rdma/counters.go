package rdma

import (
	"path/filepath"
	"strconv"
)

const maxCounters = 512 // of a port

// counters are all of a port, by the driver's names.
func (s *System) counters(device string, port int) map[string]int64 {
	counts := map[string]int64{}
	number := strconv.Itoa(port)
	for _, dir := range []string{filepath.Join("ports", number, "counters"), filepath.Join("ports", number, "hw_counters")} {
		for _, name := range s.list(infiniband, device, dir) {
			v, err := strconv.ParseInt(s.line(infiniband, device, dir, name), 10, 64)
			if err != nil || name == "lifespan" || len(counts) >= maxCounters {
				continue // lifespan is how long the values are kept, no count
			}
			counts[name] = v
		}
	}
	return counts
}

// recount fills the changes of every port since Look.
func (s *System) recount(h *Host) {
	for i := range h.Devices {
		for j := range h.Devices[i].Ports {
			p := &h.Devices[i].Ports[j]
			p.Changes = grown(p.Counters, s.counters(h.Devices[i].Name, p.Number))
		}
	}
}

func grown(before, after map[string]int64) map[string]int64 {
	changes := map[string]int64{}
	for name, now := range after {
		if n := now - before[name]; n != 0 {
			changes[name] = n
		}
	}
	return changes
}

// trouble says what a counter's growth means, by the names that the drivers give; "" for those that count what is ordinary.
func trouble(counter string) string {
	return map[string]string{
		"local_ack_timeout_err":          "an acknowledgement did not come in time: packets were lost, or the peer was gone",
		"packet_seq_err":                 "the peer missed packets",
		"out_of_sequence":                "packets are missing among those that came",
		"rnr_nak_retry_err":              "the peer had no receive posted",
		"out_of_buffer":                  "a message came and no receive was posted",
		"implied_nak_seq_err":            "an answer was missed",
		"req_transport_retries_exceeded": "a queue pair gave up: its retries were used up",
		"req_rnr_retries_exceeded":       "a queue pair gave up: the peer had no receive posted",
		"roce_slow_restart":              "packets were lost, and the sender slowed down",
		"rx_icrc_encapsulated":           "packets came in broken",
		"port_rcv_errors":                "packets came in broken",
		"port_rcv_discards":              "packets were dropped for want of room",
		"port_xmit_discards":             "packets were dropped before they left",
		"symbol_error":                   "the link garbles bits: the cable or its plugs",
		"link_downed":                    "the link went down",
		"link_error_recovery":            "the link recovered from errors",
		"to_retransmits":                 "an acknowledgement did not come in time: packets were lost",
		"seq_err_naks_rcvd":              "the peer missed packets",
		"oos_drop_count":                 "packets are missing among those that came",
		"res_oos_drop_count":             "packets are missing among those that came",
		"max_retry_exceeded":             "a queue pair gave up: its retries were used up",
		"RetransSegs":                    "packets were sent again",
		"out_of_seq_request":             "packets are missing among those that came",
		"rcvd_seq_err":                   "the peer missed packets",
		"retry_exceeded_err":             "a queue pair gave up: its retries were used up",
		"retry_rnr_exceeded_err":         "a queue pair gave up: the peer had no receive posted",
		"send_err":                       "packets could not be sent",
	}[counter]
}
