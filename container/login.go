package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/registry"
	"github.com/google/go-containerregistry/pkg/authn"
)

// login is what is known of a registry's credentials.
type login struct {
	authn.AuthConfig
	file   string // that they come from; empty: there is none
	helper string // docker-credential-NAME that would know them; it is not run
}

// hub are the names of the one registry that has many.
var hub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// login reads the credentials of a registry from Docker's config.json.
func (e *Engine) login(host string) (login, error) {
	dir := e.options.Environ["DOCKER_CONFIG"]
	if dir == "" {
		if dir = e.options.Environ["HOME"]; dir == "" {
			return login{}, nil
		}
		dir = filepath.Join(dir, ".docker")
	}
	file := filepath.Join(dir, "config.json")
	text, err := readBounded(file, maxConfigSize)
	if errors.Is(err, os.ErrNotExist) {
		return login{}, nil
	}
	if err != nil {
		return login{}, err
	}
	var config struct {
		Auths       map[string]authn.AuthConfig `json:"auths"`
		CredsStore  string                      `json:"credsStore"`
		CredHelpers map[string]string           `json:"credHelpers"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		// The error may quote what is secret.
		return login{}, fmt.Errorf("%s: not the JSON that docker login writes", file)
	}
	out := login{file: file}
	for key, auth := range config.Auths {
		if sameRegistry(key, host) && auth != (authn.AuthConfig{}) {
			out.AuthConfig = auth
			return out, nil
		}
	}
	out.helper = config.CredsStore
	for key, helper := range config.CredHelpers {
		if sameRegistry(key, host) {
			out.helper = helper
		}
	}
	return out, nil
}

// sameRegistry compares a key of config.json, which may be a URL, with the host in a reference.
func sameRegistry(key, host string) bool {
	_, after, ok := strings.Cut(key, "://")
	if !ok {
		after = key
	}
	key, _, _ = strings.Cut(after, "/")
	return key == host || slices.Contains(hub, key) && slices.Contains(hub, host)
}

// readBounded reads a small file.
func readBounded(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s: over %d bytes", file, limit)
	}
	return text, err
}

// header is the credentials of ref's registry as the engine wants them.
func (l login) header(host string) (string, error) {
	if l.AuthConfig == (authn.AuthConfig{}) {
		return "", nil
	}
	if host == hub[0] {
		host = "https://index.docker.io/v1/"
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{
		Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken,
		ServerAddress: host,
	})
}
