// Package login finds the credentials of a container registry that docker login has stored: in Docker's config.json,
// or with a credential helper that the file names.
package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/registry"
	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// Login holds the credentials of a registry.
type Login struct {
	authn.AuthConfig
	File   string // path of config.json; empty: no file
	Helper error  // why the registry's helper failed; nil: no helper, or it answered
}

// maxFile limits config.json, in bytes.
const maxFile = 1 << 20

// hub are the names of Docker Hub, the only registry with several names.
var hub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// Find finds the credentials of a registry as Docker's own client does: from the registry's helper, else from the
// general helper, else from the file. Without credentials, requests are anonymous. It returns an error only for an
// unreadable file.
func Find(ctx context.Context, environ map[string]string, host string) (Login, error) {
	dir := environ["DOCKER_CONFIG"]
	if dir == "" {
		if dir = environ["HOME"]; dir == "" {
			return Login{}, nil
		}
		dir = filepath.Join(dir, ".docker")
	}
	file := filepath.Join(dir, "config.json")
	text, err := fs.ReadFile(file, maxFile)
	if errors.Is(err, os.ErrNotExist) {
		return Login{}, nil
	}
	if err != nil {
		return Login{}, err
	}
	var config struct {
		Auths       map[string]authn.AuthConfig `json:"auths"`
		CredsStore  string                      `json:"credsStore"`
		CredHelpers map[string]string           `json:"credHelpers"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		// The error may quote a secret.
		return Login{}, fmt.Errorf("%s: not the JSON that docker login writes", file)
	}
	out := Login{File: file}
	helper := config.CredsStore
	for key, own := range config.CredHelpers {
		if same(key, host) {
			helper = own
		}
	}
	if helper != "" {
		if out.AuthConfig, out.Helper = ask(ctx, helper, environ, host); out.Known() {
			return out, nil
		}
	}
	for key, auth := range config.Auths {
		if same(key, host) && auth != (authn.AuthConfig{}) {
			out.AuthConfig, out.Helper = auth, nil
		}
	}
	return out, nil
}

// same reports whether a key of config.json, which may be a URL, names the host of a reference.
func same(key, host string) bool {
	_, after, ok := strings.Cut(key, "://")
	if !ok {
		after = key
	}
	key, _, _ = strings.Cut(after, "/")
	return key == host || slices.Contains(hub, key) && slices.Contains(hub, host)
}

// server returns the name of a registry for the engine and for helpers.
func server(host string) string {
	if host == hub[0] {
		return "https://index.docker.io/v1/"
	}
	return host
}

// Known reports whether there are credentials.
func (l Login) Known() bool { return l.AuthConfig != (authn.AuthConfig{}) }

// Authenticator returns the credentials for the registry client.
func (l Login) Authenticator() authn.Authenticator {
	if !l.Known() {
		return authn.Anonymous
	}
	return authn.FromConfig(l.AuthConfig)
}

// Header returns the credentials in the engine's encoding; empty: none.
func (l Login) Header(host string) (string, error) {
	if !l.Known() {
		return "", nil
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{
		Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken,
		ServerAddress: server(host),
	})
}
