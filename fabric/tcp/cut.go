package tcp

// cut says how n bytes become parts. Both ends of a pair do it alike, so that a part's number says where it belongs.
func (c *Config) cut(n, lanes int) (chunk, parts int) {
	if n <= c.EagerBytes {
		return n, 1
	}
	chunk = c.ChunkBytes
	if lanes > 1 {
		// Small enough that the last parts of a slow lane do not keep the others waiting.
		even := (n/(lanes*partsPerLane) + chunkAlign - 1) / chunkAlign * chunkAlign
		chunk = min(chunk, max(even, minChunkBytes))
	}
	return chunk, (n + chunk - 1) / chunk
}

// largest is the most bytes that a frame of this group can have.
func (c *Config) largest() int { return max(c.EagerBytes, c.ChunkBytes) }

const (
	partsPerLane  = 16
	minChunkBytes = 64 << 10
	chunkAlign    = 4 << 10
)
