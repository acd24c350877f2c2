// Package rail finds the ways on which two ranks can reach each other: which addresses of a host a group may use, and
// which of two hosts' addresses lie on one cable or subnet. Parsing, choosing and matching are pure; List and Look ask the
// system. fabric/bootstrap advertises what Choose gives, and matches what the others advertise.
package rail
