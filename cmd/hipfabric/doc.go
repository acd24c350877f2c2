// Hipfabric starts, measures and inspects groups of ranks.
//
//	hipfabric demo                       two ranks on this machine: every operation checked, a latency table
//	hipfabric run -n 4 -- ./engine       local ranks
//	hipfabric run --hosts a,b -- ./engine   one rank a host, through ssh
//	hipfabric perf -n 2 --op all-gather  latency and bandwidth
//	hipfabric status                     what a running group does
//	hipfabric doctor links               what is wrong between two hosts
//	hipfabric doctor hip                 which GPUs this host has, and whether a group can use them
//	hipfabric keygen, hipfabric version
//
// Each command is a file. Processes are started by internal/ranks and operations checked and timed by internal/measure;
// internal/machine reads what a measurement must be told with.
//
// Exit codes: 0 ok, 1 other, 2 usage or an invalid setting, 3 environment, unsupported or unauthorized, 4 a peer failed,
// timeout or aborted, 5 mismatch or desync, 6 wrong data, 7 device (no command of this version uses one). run returns
// the code of the rank that failed first, 128 and the signal's number when a signal ended it.
package main
