package device_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
)

// userEnv makes the test binary use devices instead of running tests.
const userEnv = "DEVICE_TEST_USER"

func devicesOf(n int) device.Request { return device.Request{GPUs: device.GPUs{Count: n}} }

func wishOptions(host string, n int) device.Options {
	gpus := gpu.These(gputest.Devices(n, "NVIDIA L4", 24*gib))
	return device.Options{CPUs: 64, GPUs: gpus, HostLock: host, GPULocks: host + ".devices"}
}

// useDevices is another process with a pool of four devices. The line "many" of in has it lease single devices, 80
// times, up to three at a time. At any other line it asks once for all four, and says why it does not get them.
func useDevices(host string, in io.Reader, out io.Writer) error {
	p, err := device.NewPool(wishOptions(host, 4))
	if err != nil {
		return err
	}
	for s := bufio.NewScanner(in); s.Scan(); {
		if s.Text() == "many" {
			if err := useMany(p, host, out); err != nil {
				return err
			}
			continue
		}
		_, why := p.TryAcquire(devicesOf(4))
		if why == nil {
			why = &device.Refusal{WaitsFor: "granted"}
		}
		if _, err := fmt.Fprintln(out, why.WaitsFor); err != nil {
			return err
		}
	}
	return nil
}

func useMany(p *device.LocalPool, host string, out io.Writer) error {
	var held []*device.Lease
	for n := 0; n < 80; {
		l, why := p.TryAcquire(devicesOf(1))
		if why == nil {
			n++
			held = append(held, l)
			if err := os.WriteFile(host+".leased", []byte(strconv.Itoa(n)), 0o644); err != nil {
				return err
			}
		}
		time.Sleep(5 * time.Millisecond)
		if refused := why != nil; len(held) > 2 || refused && len(held) > 0 {
			held[0].Release()
			held = held[1:]
		}
	}
	for _, l := range held {
		l.Release()
	}
	_, err := fmt.Fprintln(out, "done")
	return err
}

// A request for all devices has its turn while another process leases single ones, one after the other.
func TestAWideRequestIsServedBeforeYoungerOnesOfAnotherProcess(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host.lock")
	p := newPool(t, wishOptions(host, 4))
	user := startContender(t, userEnv+"="+host)
	fmt.Fprintln(user.in, "many")
	leased := func() int {
		text, _ := os.ReadFile(host + ".leased")
		n, _ := strconv.Atoi(string(text))
		return n
	}
	for leased() < 8 {
		time.Sleep(time.Millisecond)
	}
	var wide *device.Lease
	for wide == nil {
		wide, _ = p.TryAcquire(devicesOf(4))
		time.Sleep(time.Millisecond)
	}
	if n := leased(); n == 80 {
		t.Error("the other process has leased all of its single devices before")
	} else {
		t.Logf("the other process has leased %d of 80 single devices", n)
	}
	wide.Release()
	if says := user.says(t); says != "done" { // and the rest is served afterwards
		t.Error(says)
	}
}

// The wish of a process ends with it, and an older one is served before a younger.
func TestAWishEndsWithItsProcess(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host.lock")
	p := newPool(t, wishOptions(host, 4))
	one, two := must(t, p, devicesOf(1)), must(t, p, devicesOf(1))
	user := startContender(t, userEnv+"="+host)
	fmt.Fprintln(user.in, "4")
	if says := user.says(t); !strings.Contains(says, "2 of them free") {
		t.Errorf("it waits for %q", says)
	}
	kept := fmt.Sprintf("kept for device.test %d", user.cmd.Process.Pid)
	mustNot(t, p, devicesOf(1), kept)
	mustNot(t, p, devicesOf(3), kept)
	mustNot(t, p, devicesOf(3), "0 of them free")
	one.Release()
	mustNot(t, p, devicesOf(3), kept) // the younger wish does not get what is free
	_ = user.cmd.Process.Kill()
	_ = user.cmd.Wait()
	must(t, p, devicesOf(3)).Release()
	must(t, p, devicesOf(1)).Release() // and its own is over
	two.Release()
	names, err := filepath.Glob(host + ".devices/wish-*")
	if err != nil || len(names) > 1 {
		t.Errorf("%v %v", names, err) // that of the killed process
	}
}

// A request that nobody repeats keeps no devices from others.
func TestAWishLapses(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host.lock")
	a, b := newPool(t, wishOptions(host, 2)), newPool(t, wishOptions(host, 2))
	one := must(t, a, devicesOf(1))
	defer one.Release()
	mustNot(t, b, devicesOf(2), "1 of them free")
	mustNot(t, a, devicesOf(1), "kept for")
	names, err := filepath.Glob(host + ".devices/wish-*")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	past := time.Now().Add(-time.Minute)
	if err := os.Chtimes(names[0], past, past); err != nil {
		t.Fatal(err)
	}
	must(t, a, devicesOf(1)).Release()
}
