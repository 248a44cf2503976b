package gpu

import (
	"slices"
	"strings"
	"testing"
)

// The mask means what CUDA makes of the variable: a hidden device is never leased.
func TestMask(t *testing.T) {
	all := []Device{{UUID: "GPU-aa1"}, {Index: 1, UUID: "GPU-ab2"}, {Index: 2, UUID: "GPU-ac3"},
		{Index: 2, UUID: "MIG-5", Parent: "GPU-x"}}
	set := func(s string) Mask { return Mask{Visible: &s} }
	for _, test := range []struct {
		name string
		mask Mask
		want string
		told string
	}{
		{"not set", Mask{}, "GPU-aa1 GPU-ab2 GPU-ac3 MIG-5", ""},
		{"indices in another order", set("2,0"), "GPU-ac3 GPU-aa1", ""},
		{"beginnings of UUIDs", set("GPU-ab, gpu-AC3"), "GPU-ab2 GPU-ac3", ""},
		{"an instance", set("MIG-5"), "MIG-5", ""},
		{"empty", set(""), "", "empty"},
		{"none", set("-1"), "", "hides all"},
		{"what comes after nonsense", set("0,9,1"), "GPU-aa1", `names "9"`},
		{"what comes after -1", set("1,-1,0"), "GPU-ab2", ""},
		{"ambiguous", set("GPU-a"), "", "3 devices begin so"},
		{"twice", set("0,0"), "", "twice"},
		{"Slurm, nothing hidden", Mask{Slurm: "1,2"}, "GPU-ab2 GPU-ac3", ""},
		{"Slurm, the rest hidden already", Mask{Slurm: "4,5,6,7"}, "GPU-aa1 GPU-ab2 GPU-ac3 MIG-5", ""},
		{"CUDA before Slurm", Mask{Visible: set("0").Visible, Slurm: "1"}, "GPU-aa1", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			devices, err := test.mask.apply(all)
			var names []string
			for _, d := range devices {
				names = append(names, d.UUID)
			}
			if !slices.Equal(names, strings.Fields(test.want)) {
				t.Errorf("%q", names)
			}
			if (err == nil) != (test.told == "") || err != nil && !strings.Contains(err.Error(), test.told) {
				t.Errorf("%v", err)
			}
		})
	}
}
