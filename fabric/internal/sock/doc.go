// Package sock sets the options of every TCP socket that the module opens, dialled or accepted, and takes its file
// descriptor out of the runtime's poller for the engines that do raw non-blocking calls. One builder, checked by
// getsockopt, so that both ends of a connection behave alike.
package sock
