package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/docker/docker-credential-helpers/client"
	"github.com/docker/docker-credential-helpers/credentials"
	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/benchgraph/benchgraph/internal/head"
)

// answerTime limits the run of a helper: some call a cloud service first.
const answerTime = 30 * time.Second

// ask gets the credentials of a registry from docker-credential-NAME in PATH. It returns no error if the helper has
// none.
func ask(ctx context.Context, name string, environ map[string]string, host string) (authn.AuthConfig, error) {
	name = "docker-credential-" + name
	if name != filepath.Base(name) {
		return authn.AuthConfig{}, fmt.Errorf("%q is not the name of a program", name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, fmt.Errorf("no answer within %v", answerTime))
	defer cancel()
	var p program
	known, err := client.Get(func(args ...string) client.Program {
		p.cmd = exec.CommandContext(ctx, name, args...)
		p.cmd.WaitDelay = time.Second
		for name, value := range environ {
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
		return &p
	}, server(host))
	switch {
	case credentials.IsErrCredentialsNotFound(err):
		return authn.AuthConfig{}, nil
	case ctx.Err() != nil:
		return authn.AuthConfig{}, fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case errors.Is(p.err, exec.ErrNotFound):
		return authn.AuthConfig{}, fmt.Errorf("%s is not installed", name)
	case err != nil:
		return authn.AuthConfig{}, fmt.Errorf("%s: %w", name, err)
	case known.Username == "<token>": // the helpers' protocol marks identity tokens this way
		return authn.AuthConfig{IdentityToken: known.Secret}, nil
	}
	return authn.AuthConfig{Username: known.Username, Password: known.Secret}, nil
}

// program is a helper that runs once.
type program struct {
	cmd *exec.Cmd
	err error // how the helper ended
}

func (p *program) Input(in io.Reader) { p.cmd.Stdin = in }

// Output runs the helper and returns its standard output, up to maxFile bytes. A helper that fails writes the reason
// to its standard output.
func (p *program) Output() ([]byte, error) {
	out := head.Buffer{Most: maxFile}
	p.cmd.Stdout = &out
	if p.err = p.cmd.Run(); p.err != nil && bytes.ContainsRune(out.Bytes(), '{') {
		return nil, p.err // do not quote output that contains credentials
	}
	return out.Bytes(), p.err
}
