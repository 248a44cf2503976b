package glob

import "testing"

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		patterns []string
		path     string
		want     bool
	}{
		{nil, "a", false},
		{[]string{"b", "a"}, "a", true},
		{[]string{"./src/**"}, "src/deep/a.c", true},
		{[]string{"src/*.c"}, "src/deep/a.c", false},
		{[]string{"{a,b}/?"}, "b/x", true},
		{[]string{"../a"}, "a", false},
	} {
		if got := Match(test.patterns, test.path); got != test.want {
			t.Errorf("%q matches %q: %v", test.patterns, test.path, got)
		}
	}
	if err := Check([]string{"a", "b["}); err == nil || Check([]string{"./a/**", "{b,c}"}) != nil {
		t.Errorf("malformed pattern: %v", err)
	}
}
