// Package plan is the arithmetic of calls that move in parts: into how many a call is cut, which bytes of the engine's
// buffers each part stages and where in its slab, and what the part's own call is. Pure: no I/O, no allocation.
//
// Every rank cuts a call alike, from what all ranks know of it. Only an all-to-all-v is known to nobody as a whole: its
// Parts is what this rank has of its own, and the ranks take the most.
package plan
