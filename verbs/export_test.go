package verbs

// Waiting says that somebody waits.
func (ch *Channel) Waiting() bool { return len(ch.p.turn) == 1 }

// Waiting says that somebody waits.
func (c *Context) Waiting() bool { return len(c.events.turn) == 1 }
