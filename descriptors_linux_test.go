package hipfabric

// descriptorsAPart is what a split's group has beside its sockets: what its calls park on, and what wakes them.
const descriptorsAPart = 2
