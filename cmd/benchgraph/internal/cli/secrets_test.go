package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A variable names a file, whose path may have a colon, or a list of files. Directories and missing files are left out.
func TestSecretFilesAreThoseThatExist(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "12:30")}
	for _, path := range paths {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := SecretFiles(map[string]string{
		"KUBECONFIG":                  paths[0] + ":" + paths[1] + ":" + filepath.Join(dir, "none"),
		"KEY":                         paths[2],
		"AWS_CONFIG_FILE":             dir,
		"AWS_WEB_IDENTITY_TOKEN_FILE": "",
	}, "KEY")
	slices.Sort(paths)
	if slices.Sort(got); !slices.Equal(got, paths) {
		t.Errorf("%q, want %q", got, paths)
	}
}
