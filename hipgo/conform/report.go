package conform

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Result is how a check ended.
type Result string

const (
	Pass        Result = "pass"
	Fail        Result = "fail"
	Known       Result = "known"       // fails as a public report says: Check.Report
	Unsupported Result = "unsupported" // the device or the runtime lacks what the check needs
)

// Check is one check's result.
type Check struct {
	Name   string        `json:"name"`
	Result Result        `json:"result"`
	Seen   string        `json:"seen"`             // one line
	Report string        `json:"report,omitempty"` // the public report of what is Known
	Parked []string      `json:"parked,omitempty"` // what was parked when the check outlived its bound
	Took   time.Duration `json:"took_ns"`
}

// Report is the receipt of one Run.
type Report struct {
	Format  int           `json:"format"` // of this receipt: 1
	Device  string        `json:"device"`
	Arch    string        `json:"arch"`
	PCI     string        `json:"pci"`
	HIP     string        `json:"hip"`
	Library string        `json:"library"`
	OS      string        `json:"os"`
	Kernel  string        `json:"kernel"`
	Bound   time.Duration `json:"bound_ns"` // of one wait for the device
	Checks  []Check       `json:"checks"`
}

// Count tells how many checks ended so.
func (r Report) Count(result Result) int {
	n := 0
	for _, c := range r.Checks {
		if c.Result == result {
			n++
		}
	}
	return n
}

// OK says that nothing failed but what is known to.
func (r Report) OK() bool { return len(r.Checks) > 0 && r.Count(Fail) == 0 }

// String is the receipt as text: a line a fact, a line a check, and a last line with the counts.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hipfabric conform, format %d\n", r.Format)
	for _, fact := range [][2]string{
		{"device", r.Device}, {"arch", r.Arch}, {"pci", r.PCI}, {"hip", r.HIP}, {"library", r.Library},
		{"os", r.OS}, {"kernel", r.Kernel}, {"bound", r.Bound.String()},
	} {
		fmt.Fprintf(&b, "%-8s %s\n", fact[0], fact[1])
	}
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-11s  %-24s %8.1f ms  %s", c.Result, c.Name, float64(c.Took)/float64(time.Millisecond), c.Seen)
		if c.Report != "" {
			fmt.Fprintf(&b, " [%s]", c.Report)
		}
		b.WriteByte('\n')
		for _, parked := range c.Parked {
			fmt.Fprintf(&b, "%-11s    %s\n", "", parked)
		}
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d known, %d unsupported\n", r.Count(Pass), r.Count(Fail), r.Count(Known), r.Count(Unsupported))
	return b.String()
}

// JSON is the same receipt for programs, indented.
func (r Report) JSON() ([]byte, error) { return json.MarshalIndent(r, "", "  ") }
