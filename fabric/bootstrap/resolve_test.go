package bootstrap

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func addrPorts(texts ...string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, text := range texts {
		all = append(all, netip.MustParseAddrPort(text))
	}
	return all
}

func TestValidateNamesTheFieldTheValueAndTheBound(t *testing.T) {
	good := Config{Rank: 1, World: 2, Master: "127.0.0.1:2000", Secret: testSecret}
	require.NoError(t, good.Validate())
	for text, change := range map[string]func(c *Config){
		"World is 0; 1 to 64":                                  func(c *Config) { c.World = 0 },
		"World is 65; 1 to 64":                                 func(c *Config) { c.World = 65 },
		"Rank is 2; world 2 needs 0 to 1":                      func(c *Config) { c.Rank = 2 },
		"Rank is -1":                                           func(c *Config) { c.Rank = -1 },
		"the secret has 15 bytes; at least 16":                 func(c *Config) { c.Secret = testSecret[:15] },
		"Group has 65 bytes":                                   func(c *Config) { c.Group = string(make([]byte, 65)) },
		"OpenTimeout is -1s":                                   func(c *Config) { c.OpenTimeout = -time.Second },
		"Heartbeat is 1µs":                                     func(c *Config) { c.Heartbeat = time.Microsecond },
		"VerdictBusy is 150ms; at least twice":                 func(c *Config) { c.VerdictBusy = 150 * time.Millisecond },
		"VerdictIdle is 500ms; at least":                       func(c *Config) { c.VerdictIdle = 500 * time.Millisecond },
		"Master is empty; world 2":                             func(c *Config) { c.Master = "" },
		`Master is "here"`:                                     func(c *Config) { c.Master = "here" },
		`Master is "here:"; a port`:                            func(c *Config) { c.Master = "here:" },
		`Master is "here:70000"; a port`:                       func(c *Config) { c.Master = "here:70000" },
		`Master is "here:0": the others could not find port 0`: func(c *Config) { c.Master = "here:0" },
		`Master is ":2000": it names no host`:                  func(c *Config) { c.Master = ":2000" },
		`Master is "[::]:2000", which would bind every`:        func(c *Config) { c.Master = "[::]:2000" },
		`Listen is "0.0.0.0:0", which would bind every`:        func(c *Config) { c.Listen = []string{"0.0.0.0:0"} },
		"brackets":           func(c *Config) { c.Master = "fe80::1%eth0:2000" },
		"file:PATH":          func(c *Config) { c.Master = "file:" },
		"Listen has 17":      func(c *Config) { c.Listen = make([]string, 17) },
		"there are 65":       func(c *Config) { c.Settings = make([]Setting, 65) },
		`setting "" has`:     func(c *Config) { c.Settings = make([]Setting, 1) },
		"value of 257 bytes": func(c *Config) { c.Settings = []Setting{{"a", string(make([]byte, 257))}} },
	} {
		c := good
		change(&c)
		err := c.Validate()
		assert.ErrorIs(t, err, fabric.ErrInvalid, text)
		assert.ErrorContains(t, err, text)
		_, err = Join(testContext(t), c)
		var op *fabric.OpError
		assert.ErrorAs(t, err, &op, text)
	}
}

func TestGoodAddresses(t *testing.T) {
	for _, a := range []string{"localhost:2000", "10.0.0.1:2000", "[::1]:2000", "[fe80::1%eth0]:2000", "file:/tmp/x"} {
		c := Config{Rank: 1, World: 2, Master: a}
		assert.NoError(t, c.Validate(), a)
	}
}

func TestBeyondLoopbackASecretIsNeeded(t *testing.T) {
	for _, master := range []string{"192.0.2.1:2000", "[fe80::1%lo]:2000", "[2001:db8::1]:2000"} {
		for rank := range 2 {
			_, err := Join(testContext(t), Config{Rank: rank, World: 2, Master: master})
			assert.ErrorIs(t, err, fabric.ErrInvalid, master)
			assert.ErrorContains(t, err, "HIPFABRIC_SECRET_FILE")
			assert.ErrorContains(t, err, "hipfabric keygen")
			assert.ErrorContains(t, err, "Config.SecretFile")
		}
	}
	c := Config{Insecure: true}
	assert.NoError(t, c.allowed("Master", "x", netip.MustParseAddr("192.0.2.1")))
	c = Config{Secret: testSecret}
	assert.NoError(t, c.allowed("Master", "x", netip.MustParseAddr("192.0.2.1")))
	_, err := Join(testContext(t), Config{Rank: 0, World: 2, Master: "127.0.0.1:2000", Listen: []string{"192.0.2.1:0"}})
	assert.ErrorContains(t, err, `Listen is "192.0.2.1:0"`)
}

func TestWithoutASecretLoopbackWorks(t *testing.T) {
	all := configs(t, 2)
	for r := range all {
		all[r].Secret = nil
	}
	group(t, all)
}

func TestNamesAndIPv6Reach(t *testing.T) {
	_, port, err := net.SplitHostPort(freePort(t))
	require.NoError(t, err)
	for _, host := range []string{"localhost", "127.0.0.2", "::1"} {
		t.Run(host, func(t *testing.T) {
			if l, err := net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
				t.Skipf("this system has no %s: %v", host, err)
			} else {
				l.Close()
			}
			ctx := testContext(t)
			s := group(t, withMaster(configs(t, 3), net.JoinHostPort(host, port)))
			each(2, func(i int) {
				if i == 0 {
					c, err := s[2].Dial(ctx, 1, fabric.Lane{Channel: "host"})
					if assert.NoError(t, err) {
						t.Cleanup(func() { c.Close() })
					}
					return
				}
				c, err := s[1].Accept(ctx, 2, fabric.Lane{Channel: "host"})
				if assert.NoError(t, err) {
					c.Close()
				}
			})
		})
	}
}

func TestATakenPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = Join(testContext(t), withMaster(configs(t, 2), l.Addr().String())[0])
	assert.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "is taken by another program")
	assert.ErrorContains(t, err, "127.0.0.1")
}

func TestAForeignMasterAddressIsNamed(t *testing.T) {
	_, err := Join(testContext(t), withMaster(configs(t, 2), "192.0.2.1:2000")[0])
	assert.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "192.0.2.1:2000 is no address of this host")
}

func TestOfSeveralAddressesThoseOfThisHostAreBound(t *testing.T) {
	l, err := listen(testContext(t), "Master", addrPorts("192.0.2.1:0", "127.0.0.1:0", "127.0.0.2:0"), nil)
	require.NoError(t, err)
	defer l.close()
	assert.NotContains(t, l.addresses()[0], "192.0.2.1")
}

// named are configs whose Master is a name with these addresses on the given rank, and the last of them on the other.
func named(t *testing.T, rank int, addresses ...string) []Config {
	_, port, err := net.SplitHostPort(freePort(t))
	require.NoError(t, err)
	all := withMaster(configs(t, 2), net.JoinHostPort(addresses[len(addresses)-1], port))
	all[rank].Master = net.JoinHostPort("node0.test", port)
	all[rank].lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "node0.test" {
			return nil, nil
		}
		var ips []netip.Addr
		for _, a := range addresses {
			ips = append(ips, netip.MustParseAddr(a))
		}
		return ips, nil
	}
	return all
}

func TestOfANameWithSeveralAddressesTheLiveOneIsDialled(t *testing.T) {
	group(t, named(t, 1, "127.0.0.9", "127.0.0.1"))
}

func TestOfANameWithSeveralAddressesThisHostsOwnIsBound(t *testing.T) {
	s := group(t, named(t, 0, "203.0.113.1", "127.0.0.1"))
	require.Len(t, s[0].listener.addresses(), 1)
	assert.Contains(t, s[0].listener.addresses()[0], "127.0.0.1:")
}

func TestAnUnknownNameIsOneClearError(t *testing.T) {
	_, err := Join(testContext(t), withMaster(configs(t, 2), "no-such-host.invalid:2000")[1])
	if assert.Error(t, err) && !assert.ErrorIs(t, err, fabric.ErrInvalid) {
		t.Logf("without a resolver: %v", err)
	}
	assert.ErrorContains(t, err, "no-such-host.invalid")
}

func TestAPublishedAddressIsGoneAfterClose(t *testing.T) {
	all := configs(t, 2)
	path := all[0].Master[len(filePrefix):]
	require.NoError(t, os.WriteFile(path, []byte("127.0.0.1:1\n"), 0o600), "a stale one is harmless")
	s := group(t, all)
	address, err := readPublished(path)
	require.NoError(t, err)
	assert.Equal(t, s[0].listener.addresses()[0], address)
	closeAll(s)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestAnUnwritableFileIsNamed(t *testing.T) {
	c := configs(t, 2)[0]
	c.Master = "file:/no/such/folder/master"
	_, err := Join(testContext(t), c)
	assert.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "/no/such/folder/master")
}

func TestANameThatStandsForThisHostAloneIsSeen(t *testing.T) {
	loopback, other := netip.MustParseAddrPort("127.0.1.1:1"), netip.MustParseAddrPort("192.0.2.1:1")
	assert.True(t, onlyHere("host-a:1", []netip.AddrPort{loopback}))
	assert.False(t, onlyHere("host-a:1", []netip.AddrPort{loopback, other}))
	assert.False(t, onlyHere("localhost:1", []netip.AddrPort{loopback}))
	assert.False(t, onlyHere("file:/tmp/master", []netip.AddrPort{loopback}))
	assert.False(t, onlyHere("127.0.0.1:1", []netip.AddrPort{loopback}))
}
