// Package machine reads what a measurement must be told with: the system, the processor, and the network interface that the
// ranks meet on, with its counters. What a system does not say is left blank.
package machine
