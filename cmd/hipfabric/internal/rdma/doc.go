// Package rdma says what a host has for RDMA and what is wrong with it, and tries queue pairs with another host.
//
// A System reads the facts: from sysfs and /proc, which say what the kernel has, and from libibverbs, which says what a program
// gets (system.go); each port that can be used is tried by writes to itself (selftest.go). Two hosts meet as the ends of a group
// of their own: the listening one serves (far.go), the asking one decides what is tried (near.go). What is collected is a Report
// (facts.go); Findings is a pure function of it (findings.go). Nothing is printed here.
package rdma
