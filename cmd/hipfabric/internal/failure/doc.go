// Package failure breaks groups of real processes and looks at what the others say. It has tests only: each starts ranks
// as processes of its own test binary, which obey orders that they read as JSON.
package failure
