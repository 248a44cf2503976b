package hclspec

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// maxNearest bounds nearest, which is the number of commits of the history that one wheel may ask for.
const maxNearest = 1000

// nearest reads the number of commits back in the history whose prebuilt wheels may serve.
func (r reader) nearest(w *Wheel) {
	w.Nearest = int(r.Whole("nearest", 0, 0))
	if w.Nearest == 0 {
		return
	}
	switch {
	case w.Nearest > maxNearest:
		r.Fail(r.At("nearest"), "Number out of range", "nearest is at most %d commits.", maxNearest)
	case !r.Has("overlay") || !r.Has("source") || !r.Has("prebuilt"):
		r.Fail(r.At("nearest"), "Nothing to be near to",
			"%s takes the prebuilt wheel of an ancestor whose tree is the same outside the overlay, and lays its "+
				"own files over it: nearest needs source, overlay and prebuilt.", r.Title())
	case r.l.shadow || len(w.Prebuilt) == 0: // an empty list: there is nothing to ask
	case w.Candidate == "":
		r.Fail(r.At("nearest"), "No revision",
			"nearest needs for_each over candidates: each.rev says whose ancestors may serve.")
	default:
		w.PrebuiltOf = func(rev string) []string { return r.of(rev).Strs("prebuilt") }
		if one, other := strings.Repeat("0", 40), strings.Repeat("1", 40); slices.Equal(w.PrebuiltOf(one),
			w.PrebuiltOf(other)) {
			r.Fail(r.At("prebuilt"), "The same for each revision",
				"With nearest, prebuilt must say where the wheel of an ancestor is: let its URLs hold ${each.rev}.")
		}
	}
}

// of returns the reader for the candidate at another revision. each.rev is that revision, and each.value.rev, too, if
// each.value is the candidate.
func (r reader) of(rev string) reader {
	if r.KeyOnly {
		return r
	}
	each := withRev(r.Each, rev)
	if all := each.AsValueMap(); all["value"] != cty.NilVal && isCandidate(all["value"]) {
		all["value"] = withRev(all["value"], rev)
		each = cty.ObjectVal(all)
	}
	return r.with(r.Instance, each)
}

func isCandidate(v cty.Value) bool {
	return v.IsKnown() && !v.IsNull() && v.Type().IsObjectType() && v.Type().HasAttribute("rev") &&
		v.Type().HasAttribute("variant")
}

func withRev(object cty.Value, rev string) cty.Value {
	all := object.AsValueMap()
	all["rev"] = cty.StringVal(rev)
	return cty.ObjectVal(all)
}
