// Package endpoint finds the container engine that docker would use.
package endpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Endpoint is the address of an engine.
type Endpoint struct {
	Host string // such as "unix:///var/run/docker.sock"; with an error, the name of the context
	// CA, Certificate and Key are paths; if all are empty, the engine does not use TLS.
	CA, Certificate, Key string
}

// Remedy is the remedy for an engine that cannot be used as configured.
const Remedy = "correct DOCKER_HOST, or the context (docker context ls), or name the engine in DOCKER_HOST"

const usual = "unix:///var/run/docker.sock"

// TLS reports whether the engine uses TLS.
func (e Endpoint) TLS() bool { return e.CA+e.Certificate+e.Key != "" }

// Standard reports whether no engine is configured, so that the engine is the one at the usual socket.
func Standard(environ map[string]string) bool {
	e, err := Find(environ)
	return err == nil && environ["DOCKER_HOST"] == "" && e.Host == usual
}

// Find returns the engine of DOCKER_HOST, or else of DOCKER_CONTEXT, or else of the context that "docker context use"
// has stored in Docker's config.json, or else of the usual socket. It returns an error if the context is unusable.
func Find(environ map[string]string) (Endpoint, error) {
	var e Endpoint
	dir := environ["DOCKER_CONFIG"]
	if home := environ["HOME"]; dir == "" && home != "" {
		dir = filepath.Join(home, ".docker")
	}
	e.Host = environ["DOCKER_HOST"]
	if e.Host == "" {
		name, err := current(environ, dir)
		if err != nil || name != "" && name != "default" {
			e.Host = "context " + name
			return e, cmp.Or(err, e.follow(dir, name))
		}
		e.Host = usual
	}
	if certs := environ["DOCKER_CERT_PATH"]; certs != "" {
		e.CA, e.Certificate, e.Key = certs+"/ca.pem", certs+"/cert.pem", certs+"/key.pem"
	}
	return e, nil
}

// current returns the name of the configured context; empty: none.
func current(environ map[string]string, dir string) (string, error) {
	if name := environ["DOCKER_CONTEXT"]; name != "" || dir == "" {
		return name, nil
	}
	var config struct{ CurrentContext string }
	err := read(filepath.Join(dir, "config.json"), &config)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return config.CurrentContext, err
}

// follow reads what Docker stores about a context.
func (e *Endpoint) follow(dir, name string) error {
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	var meta struct {
		Endpoints map[string]struct {
			Host          string
			SkipTLSVerify bool
		}
	}
	err := read(filepath.Join(dir, "contexts/meta", id, "meta.json"), &meta)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no such context in %s", filepath.Join(dir, "contexts"))
	}
	if err != nil {
		return err
	}
	to := meta.Endpoints["docker"]
	switch {
	case to.Host == "":
		return errors.New("the context names no engine")
	case to.SkipTLSVerify:
		return errors.New("the context does not verify its engine, which benchgraph does not support")
	}
	e.Host = to.Host
	e.identify(filepath.Join(dir, "contexts/tls", id, "docker"))
	return nil
}

// identify uses the certificates that a context has.
func (e *Endpoint) identify(dir string) {
	for name, file := range map[string]*string{"ca.pem": &e.CA, "cert.pem": &e.Certificate, "key.pem": &e.Key} {
		if path := filepath.Join(dir, name); there(path) {
			*file = path
		}
	}
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func read(file string, v any) error {
	text, err := os.ReadFile(file)
	if err == nil && json.Unmarshal(text, v) != nil { // the error may quote a secret
		err = fmt.Errorf("%s: not the JSON that docker writes", file)
	}
	return err
}
