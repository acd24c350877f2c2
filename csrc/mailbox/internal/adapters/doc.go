// Package adapters plays, for tests, what moves the payloads of a group's calls: each rank's proxy, which watches the doorbells of
// its region, and HCAs that place bytes late and in no order, but of a stripe the flag last. It is empty but on Linux.
package adapters
