// Package fabrictest is for tests: of paths, and of engines that use them. It needs neither sockets nor a second
// process.
//
//   - Groups gives an engine's tests n ranks in one process, each with a Host and a Control; Each runs them; Kill and
//     Partition break them.
//   - Network is a fabric.Transport in memory: the oracle that other paths are held against. It stages every byte
//     where a socket would, blocks where a socket would, and compares calls as every path must.
//   - Run is the contract that every path must keep, over a Subject; RunPairwise is a shorter way through its values.
//   - Stream is the Subject of a path for device memory, over a Device; RunStream is what only such a path can promise,
//     and RunCapture what one that joins an engine's graphs can.
//   - Faulty puts drops, delays, cuts and corrupted bytes between the ends of real connections.
//
// What a test opens is worth until the test ends: Groups and Run close it.
package fabrictest
