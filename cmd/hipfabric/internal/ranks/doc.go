// Package ranks starts the processes of a group, one a rank, and looks after them until the last has ended.
//
// Local starts them on this host; Remote starts one ssh a rank. Both give a Job, whose Run prefixes the output, forwards
// signals, ends all ranks when one fails and says with which code. A Job owns a private temporary folder until Close.
// Processes are ended by group, so that what they started ends as well. Unix only: elsewhere Run is errors.ErrUnsupported.
package ranks
