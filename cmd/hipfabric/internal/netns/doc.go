// Package netns gives tests hosts of their own: network namespaces of this machine, joined by cables and switches that a
// test can pull, cut one way and, where the kernel has netem, make slow or lossy. Its tests run the contract, the command
// and long streams of checked bytes between such hosts.
//
// It needs Linux, root and iproute2; a test without them is skipped, and says why. What a test makes ends with the test.
package netns
