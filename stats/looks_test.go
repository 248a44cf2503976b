package stats

import (
	"slices"
	"testing"
)

func TestLooks(t *testing.T) {
	for _, test := range []struct {
		samples, most int
		want          []int
	}{
		{4, 15, []int{4, 6, 9, 12, 15}},
		{7, 15, []int{7, 9, 11, 13, 15}},
		{7, 11, []int{7, 9, 11}},
		{7, 7, []int{7}},
		{7, 8, []int{7, 8}},
		{7, 9, []int{7, 9}},
		{7, 10, []int{7, 8, 10}},
		{5, 3, []int{5}},
		{0, 0, []int{1}},
		{1, 3, []int{3}},
		{3, 20, []int{4, 8, 12, 16, 20}},
	} {
		if got := Looks(test.samples, test.most); !slices.Equal(got, test.want) {
			t.Errorf("Looks(%d, %d) = %v, want %v", test.samples, test.most, got, test.want)
		}
	}
}
