// Package launch answers who this process is: its rank, the world, the master and the secret, and which source said so.
//
// It knows the HIPFABRIC_* variables that `hipfabric run` sets, and it is the only package of the module that reads the
// environment: everything else takes values. The root's FromEnv fills a Config from what it finds.
package launch
