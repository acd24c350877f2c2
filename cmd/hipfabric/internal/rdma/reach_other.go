//go:build !linux

package rdma

import (
	"context"
	"net/netip"
)

func packets(context.Context, netip.Addr, int) (answers bool, fits string, pathMTU int) {
	return false, "", 0
}

func neighbour(netip.Addr) string { return "" }
