// Package conform is what any HCAs under package verbs must do, whatever is behind the table: verbstest's tests run it in memory, and
// those of soft RoCE on real queue pairs. Where devices are free to differ it takes each of what they may do.
package conform
