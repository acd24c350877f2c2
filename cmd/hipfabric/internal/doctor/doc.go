// Package doctor measures the way between two hosts, outside any engine's group, and says what is wrong with it.
//
// The two ends form a group of two ranks of their own: the listening end is rank 0 and serves (far.go), the asking end is
// rank 1 and decides what is measured (near.go). Control carries the orders, connections of the group the measured bytes
// (session.go). What is collected is a Report (facts.go); Findings is a pure function of it (findings.go).
package doctor
