package funcs

import "testing"

// TestVersionsOfDescriptions compares with the results of setuptools-scm 8.
func TestVersionsOfDescriptions(t *testing.T) {
	for text, want := range map[string]string{
		"v0.7.2-240-g0d243f2a":       "0.7.3.dev240+g0d243f2a",
		"v0.7.2-0-g0d243f2a":         "0.7.2",
		"v0.10.0rc1-19-g0ec82edda":   "0.10.0rc2.dev19+g0ec82edda",
		"v0.6.3.post1-7-gabcd":       "0.6.3.post2.dev7+gabcd",
		"release-1.2-3-gabcdef1":     "1.3.dev3+gabcdef1",
		"v1.0-rc1-2-gabcdef1":        "1.0rc2.dev2+gabcdef1",
		"1.9-1-gabcdef1":             "1.10.dev1+gabcdef1",
		"v0.7.2":                     "",
		"nightly-1-gabcdef1":         "",
		"v1.0.dev3-1-gabcdef1":       "",
		"v1-99999999999999-gabcdef1": "",
		"99999999999999-1-gabcdef1":  "",
		"v1.0-0-gabc\n":              "",
		"":                           "",
	} {
		if got, err := pep440Version(text); got != want || (err == nil) != (want != "") {
			t.Errorf("pep440Version(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}
