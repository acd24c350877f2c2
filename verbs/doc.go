// Package verbs is ibverbs for Go: devices, ports, GIDs, protection domains, registered memory, completion queues with their
// channels, reliable connected queue pairs and asynchronous events of whatever libibverbs is there at run time. It binds
// thinly: a call does what the verb does, and its doc names the C prototype.
package verbs
