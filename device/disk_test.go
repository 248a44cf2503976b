package device_test

import (
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/device"
)

func TestRoomOnTheDiskRunsShortAndComesBack(t *testing.T) {
	d := device.Disk{Dir: "/work", Size: 10 * gib, Free: 6 * gib}
	p := newPool(t, device.Options{CPUs: 8, Disk: func() device.Disk { return d }})
	all := device.Request{Disk: 10 * gib}
	if err := p.Fits(all); err != nil {
		t.Errorf("somebody may tidy up: %v", err)
	}
	mustNot(t, p, all, "10 GiB of disk (6 GiB of 10 GiB are free)")
	four := must(t, p, device.Request{Disk: 4 * gib})
	mustNot(t, p, device.Request{Disk: 3 * gib},
		"3 GiB of disk (6 GiB of 10 GiB are free, and 4 GiB are kept for what runs)")
	must(t, p, device.Request{}).Release() // who needs none is not kept waiting
	if a := p.Free(device.Request{Disk: 1}); a.Disk != 2*gib {
		t.Errorf("%d bytes are free", a.Disk)
	}
	if a := p.Free(device.Request{}); !a.Covers(device.Request{Disk: 1 << 50}) {
		t.Errorf("%d bytes are free for who needs none", a.Disk)
	}
	if a := four.Amounts(device.GPUs{}); a.Disk != 4*gib {
		t.Errorf("the lease holds %d bytes", a.Disk)
	}
	four.Yield()
	three := must(t, p, device.Request{Disk: 3 * gib})
	four.Release()
	three.Release()
	d = device.Disk{}
	must(t, p, device.Request{Disk: 1 << 50}).Release() // nothing is known of it
}

// Every lease can fill its disk space, whatever the others fill: the disk never gets full.
func TestGrantedDiskCanBeFilled(t *testing.T) {
	const size = 100
	type holder struct {
		*device.Lease
		filled int64
	}
	rapid.Check(t, func(t *rapid.T) {
		stays := rapid.Int64Range(0, size).Draw(t, "others' files") // and results
		var held []*holder
		free := func() int64 {
			n := size - stays
			for _, h := range held {
				n -= h.filled
			}
			return n
		}
		p, err := device.NewPool(device.Options{CPUs: 100, Disk: func() device.Disk {
			return device.Disk{Size: size, Free: free()}
		}})
		if err != nil {
			t.Fatal(err)
		}
		any := func(t *rapid.T) int {
			if len(held) == 0 {
				t.Skip("nothing is held")
			}
			return rapid.IntRange(0, len(held)-1).Draw(t, "which")
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				r := device.Request{Disk: rapid.Int64Range(0, size+1).Draw(t, "disk")}
				l, waits := p.TryAcquire(r)
				switch {
				case (p.Fits(r) == nil) != (r.Disk <= size):
					t.Fatalf("%d of %d: %v", r.Disk, size, p.Fits(r))
				case l == nil && len(held) == 0 && r.Disk <= free():
					t.Fatalf("%d are free, and %d are waited for: %s", free(), r.Disk, waits.WaitsFor)
				case l == nil && r.Disk == 0:
					t.Fatalf("who needs nothing waits for %s", waits.WaitsFor)
				case l != nil:
					held = append(held, &holder{Lease: l})
				}
			},
			"fill": func(t *rapid.T) {
				h := held[any(t)]
				h.filled = rapid.Int64Range(h.filled, h.Disk).Draw(t, "filled")
			},
			"release": func(t *rapid.T) {
				i := any(t)
				stays += rapid.Int64Range(0, held[i].filled).Draw(t, "result")
				held[i].Release()
				held = slices.Delete(held, i, i+1)
			},
			"tidy up": func(t *rapid.T) { stays = rapid.Int64Range(0, stays).Draw(t, "left") },
			"": func(t *rapid.T) {
				left := free()
				for _, h := range held {
					left -= h.Disk - h.filled
				}
				if left < 0 {
					t.Fatalf("%d more were granted than there are", -left)
				}
			},
		})
	})
}

func TestDiskOfThisMachine(t *testing.T) {
	dir := t.TempDir()
	d := device.DiskOf(dir)()
	if d.Dir != dir || d.Free <= 0 || d.Free > d.Size {
		t.Fatalf("%+v", d)
	}
	if none := device.DiskOf(filepath.Join(dir, "none"))(); none != (device.Disk{}) {
		t.Errorf("%+v", none)
	}
}
