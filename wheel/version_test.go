package wheel

import "testing"

func TestVersionOfADescription(t *testing.T) {
	for said, want := range map[string]string{
		"v0.6.4.post1-182-g98f47f2a4": "0.6.4.post2.dev182+g98f47f2a4",
		"v0.8.4-394-gfbefc8a78":       "0.8.5.dev394+gfbefc8a78",
		"v0.9.0rc2-1-g0123456":        "0.9.0rc3.dev1+g0123456",
		"v0.9.0-0-g0123456":           "0.9.0",
		"release-1.2-3-gabcdef0":      "1.3.dev3+gabcdef0",
		"1.0.dev0-7-gabcdef0":         "1.0.dev7+gabcdef0",
		"nightly-2024-3-gabcdef0":     "2025.dev3+gabcdef0",
		"tested-by-5x-3-gabcdef0":     "",
		"v1.2-beta-3-gabcdef0":        "",
		"abcdef0":                     "",
		"":                            "",
		"v99999999999999999999-1-gab": "",
	} {
		if got := Version(said); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
