package hipfabric

// The keys of log records, in one place so that they are the same everywhere.
const (
	keyBehind     = "behind"
	keyCalls      = "calls"
	keyCores      = "cores"
	keyDevice     = "device"
	keyDisagree   = "disagree"
	keyErr        = "err"
	keyGate       = "gate"
	keyGroup      = "group"
	keyLocalRanks = "local_ranks"
	keyMissing    = "missing"
	keyOpenFor    = "open_for"
	keyPath       = "path"
	keyRank       = "rank"
	keyRanks      = "ranks"
	keySpin       = "spin"
	keyWait       = "wait"
	keyWorld      = "world"
)
