package disk_test

import (
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/cachetest"
)

// Another result under the key does not match the outline of the first one, although its files have the same sizes.
func TestAnOutlineIsOfOneResult(t *testing.T) {
	d := openDisk(t, storeDir(t))
	meta := cachetest.Meta("a")
	put := func(text string) cache.Outline {
		e, err := d.Put(t.Context(), cache.Draft{Meta: meta,
			Dir: cachetest.Prepare(t, d, map[string]string{"f": text})})
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Get(t.Context(), meta.Key, false)
		if err != nil {
			t.Fatal(err)
		}
		o := d.Outline(&e.Meta)
		if seen := d.Outline(&got.Meta); seen.Meta != o.Meta || seen.First != o.First || seen.First == 0 {
			t.Errorf("Get saw %+v; the directory tells %+v", seen, o)
		}
		return o
	}
	for i, replace := range []func() error{
		func() error { return d.Supersede(t.Context(), meta.Key) },
		func() error { return d.Remove(meta.Key) },
	} {
		before := put("105")
		if !d.Intact(&before, false) || !d.Intact(&before, true) {
			t.Errorf("%d: %+v is not found again", i, before)
		}
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		after := put("115")
		if d.Intact(&before, false) || !d.Intact(&after, false) {
			t.Errorf("%d: %+v and %+v are not told apart", i, before, after)
		}
		if err := d.Supersede(t.Context(), meta.Key); err != nil {
			t.Fatal(err)
		}
	}
}

// A result without files consists of its meta file. Without that file, the result is gone.
func TestAResultWithoutFilesIsIntactWhileItIsThere(t *testing.T) {
	d := openDisk(t, storeDir(t))
	e, err := d.Put(t.Context(), cache.Draft{Meta: cachetest.Meta("a"), Dir: cachetest.Prepare(t, d, nil)})
	if err != nil {
		t.Fatal(err)
	}
	o := d.Outline(&e.Meta)
	if !d.Intact(&o, false) {
		t.Error("it is there, and is not found")
	}
	if err := d.Remove(e.Key); err != nil {
		t.Fatal(err)
	}
	if d.Intact(&o, false) {
		t.Error("it was removed, and is found")
	}
}
