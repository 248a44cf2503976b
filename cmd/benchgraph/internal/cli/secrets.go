package cli

import (
	"os"
	"path/filepath"
)

// withSecrets are the variables that name files with credentials, as the programs and libraries read them that
// benchgraph uses.
var withSecrets = []string{"AWS_CONFIG_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_SHARED_CREDENTIALS_FILE",
	"AWS_WEB_IDENTITY_TOKEN_FILE", "KUBECONFIG", "MODAL_CONFIG_PATH"}

// SecretFiles returns the absolute paths of files with secrets that an environment names, in one more variable, too.
// Commands in a sandbox must not read them.
func SecretFiles(env map[string]string, more string) (all []string) {
	for _, name := range append([]string{more}, withSecrets...) {
		for _, path := range append(filepath.SplitList(env[name]), env[name]) { // KUBECONFIG is a list
			path, err := filepath.Abs(path)
			if info, missing := os.Stat(path); err == nil && missing == nil && info.Mode().IsRegular() {
				all = append(all, path)
			}
		}
	}
	return all
}
