package findings

import (
	"testing"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
)

// A row lists the settings of the machine that changed between its blocks, on either side. A setting that a block did
// not record, as in earlier versions, is no difference.
func TestTheMachineChangedBetweenBlocks(t *testing.T) {
	side := func(machines ...map[string]string) *group.Standing {
		s := &group.Standing{}
		for i, m := range machines {
			s.Evidence = append(s.Evidence, sample.Evidence{Block: i + 1, Machine: m})
		}
		return s
	}
	old := map[string]string{"kernel": "6.1", "turbo": "on"}
	for _, test := range []struct {
		s, base *group.Standing
		want    string
	}{
		{side(), side(), ""},
		{side(old, old), side(old, old), ""},
		{side(old, nil), side(nil, old), ""},
		{side(old, map[string]string{"kernel": "6.1"}), side(), ""},
		{side(old, old, old), side(old, old, map[string]string{"kernel": "6.2", "turbo": "off"}),
			"the machine was not the same for all blocks: kernel: 6.1 in blocks 1, 2, 3, 6.2 in block 3; turbo: on " +
				"in blocks 1, 2, 3, off in block 3"},
		{side(old, old, old, old, map[string]string{"turbo": "off"}), side(),
			"the machine was not the same for all blocks: turbo: on in blocks 1, 2, 3 and 1 more, off in block 5"},
	} {
		if got := machineChanged(test.s, test.base); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
