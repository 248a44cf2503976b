package image

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/trial"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/head"
	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/shell/output"
)

// This file runs commands that make an image, or that inspect one.

// changing is a command that makes a step.
type changing struct {
	stage   string
	argv    []string
	says    string    // text of the command for the log; empty: the whole command
	files   io.Reader // a tar that is unpacked at / before the command; nil: none
	mounts  []executor.Mount
	network bool
	env     []string // variables that the image keeps
	// runs before the container becomes an image; nil: none
	proof func(ctx context.Context, name string, labels map[string]string) error
}

var errNoEffect = errors.New("it changed nothing")

// change runs a command in a container of the image so far, and makes an image of the container.
func (m *making) change(ctx context.Context, c changing, labels map[string]string) (img container.Image, err error) {
	process, out, err := m.start(ctx, c)
	if err != nil {
		return img, err
	}
	defer out.Close()
	box, ok := process.(executor.Contained)
	if !ok {
		_, _ = process.Stop()
		return img, errors.New("the step was started outside of a container")
	}
	defer func() { err = errors.Join(err, m.engine.Remove(context.WithoutCancel(ctx), box.Container())) }()
	status, err := process.Wait(ctx)
	switch {
	case err != nil:
		return img, err
	case status.Code == exitNoEffect:
		return img, fmt.Errorf("%w: %s", errNoEffect, strings.TrimPrefix(out.LastLine(), noEffect))
	case !status.OK():
		return img, m.sh.Failure(c.stage, out, diagnosis.Ended(status))
	}
	if c.proof != nil {
		if err := c.proof(ctx, box.Container(), labels); err != nil {
			return img, err
		}
	}
	return m.commit(ctx, box.Container(), c, labels)
}

// owner returns the labels of the containers that this process makes.
type owner interface{ Labels() map[string]string }

// blank makes an image with files added, without running a command.
func (m *making) blank(ctx context.Context, files io.Reader,
	proof func(ctx context.Context, name string, labels map[string]string) error,
	labels map[string]string) (img container.Image, err error) {
	err = m.inert(ctx, func(name string) error {
		if files != nil {
			if err := m.engine.CopyTo(ctx, name, files); err != nil {
				return err
			}
		}
		if proof != nil {
			if err := proof(ctx, name, labels); err != nil {
				return err
			}
		}
		img, err = m.commit(ctx, name, changing{}, labels)
		return err
	})
	return img, err
}

// inert makes a container in which no command runs, for the duration of use.
func (m *making) inert(ctx context.Context, use func(name string) error) (err error) {
	name := "benchgraph-" + strings.ToLower(rand.Text())
	config := &api.Config{Image: m.at.ID, Cmd: []string{"-"}, Labels: m.nodeLabel()}
	o, ok := m.t.Shells.Containers.(owner)
	if !ok || len(o.Labels()) == 0 {
		return errors.New("the executor of containers has no labels for them")
	}
	maps.Copy(config.Labels, o.Labels())
	defer func() { err = errors.Join(err, m.engine.Remove(context.WithoutCancel(ctx), name)) }()
	if _, err := m.engine.Create(ctx, name, config, &api.HostConfig{NetworkMode: "none"}); err != nil {
		return err
	}
	return use(name)
}

// commit makes the image of a step.
func (m *making) commit(ctx context.Context, name string, c changing, labels map[string]string) (container.Image,
	error) {
	options := m.configOf(c, labels)
	id, err := m.engine.Commit(ctx, name, options)
	if err != nil {
		return container.Image{}, err
	}
	m.ran.Committed(id, m.at.ID, options.Config)
	return m.engine.Image(ctx, id)
}

// configOf returns the configuration of a step's image: that of the image before, with the step's labels and
// variables. It omits the step's command. The engine keeps volumes, ports and the stop signal by itself; ONBUILD is
// omitted.
func (m *making) configOf(c changing, labels map[string]string) api.CommitOptions {
	config := &api.Config{
		User: m.at.User, WorkingDir: m.at.Dir, Entrypoint: append([]string{}, m.at.Entrypoint...), Cmd: m.at.Command,
		Env: c.env, Labels: map[string]string{}, Shell: m.at.Shell, Healthcheck: m.at.Health,
	}
	if len(config.Entrypoint) == 0 && len(config.Cmd) == 0 {
		config.Cmd = []string{"sh"}
	}
	maps.Copy(config.Labels, labels)
	// Otherwise the container's own labels would be kept.
	config.Labels[container.LabelState], config.Labels[container.LabelOwner] = "", ""
	return api.CommitOptions{Config: config}
}

func (m *making) start(ctx context.Context, c changing) (executor.Process, *output.Kept, error) {
	out := m.sh.Capture()
	m.say("$ %s\n", strings.TrimSpace(cmp.Or(c.says, strings.Join(c.argv, " "))))
	user := "" // an image without a USER runs as root already
	if m.at.User != "" {
		user = "0:0"
	}
	process, err := m.ran.Executor(m.t.Shells.Containers).Start(ctx, executor.Command{
		Argv: c.argv, Dir: "/", Stdout: out, Stderr: out,
		Container: &executor.Container{
			Image: m.at.ID, Labels: m.nodeLabel(), Mounts: c.mounts, Files: c.files, User: user,
			Outward: c.network || m.t.Spec.Network, Keep: true, Grants: trial.Grants{
				// for installers that change the owners of files, or their own user
				Caps: []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID"},
			},
		},
	})
	if err != nil {
		out.Close()
		return nil, nil, diagnosis.NotRun(err, c.stage, failure.Permanent)
	}
	return process, out, nil
}

func (m *making) nodeLabel() map[string]string {
	return map[string]string{container.LabelNode: m.t.Spec.Address.String()}
}

// inspect runs a command in a temporary container, hardened, without a network unless the block allows it, and returns
// its standard output.
func (m *making) inspect(ctx context.Context, stage string, argv []string, mounts []executor.Mount) (string, error) {
	dir, err := os.MkdirTemp(m.env.Work, "look-")
	if err == nil {
		err = os.Chmod(dir, 0o777) // the user depends on the image
	}
	if err != nil {
		return "", err
	}
	out := m.sh.Capture()
	defer out.Close()
	m.say("$ %s\n", strings.Join(argv, " "))
	stdout := head.Buffer{Most: shell.MostSaid} // the command may run a candidate's code, which may print without end
	// Only the commands of a verify are noted: all others change nothing.
	status, err := executor.Run(ctx, m.ran.ExecutorIf(stage == "verify", m.t.Shells.Containers), executor.Command{
		Argv: argv, Dir: shell.InsideWork, Stdout: io.MultiWriter(&stdout, out), Stderr: out,
		Container: &executor.Container{
			Image: m.at.ID, Labels: m.nodeLabel(), Mounts: append(slices.Clip(mounts),
				executor.Mount{Host: dir, Inside: shell.InsideWork, Writable: true}),
			Outward: m.t.Spec.Network,
		},
	})
	switch {
	case err != nil:
		return "", diagnosis.NotRun(err, stage, failure.Permanent)
	case !status.OK():
		return "", m.sh.Failure(stage, out, diagnosis.Ended(status))
	}
	return string(stdout.Bytes()), nil
}

// verify runs a command that must pass in the image.
func (m *making) verify(ctx context.Context, c hclspec.Command) error {
	argv, mounts, err := m.command(ctx, c)
	if err != nil {
		return err
	}
	_, err = m.inspect(ctx, "verify", argv, mounts)
	if f, ok := errors.AsType[*engine.Failure](err); ok && f.Rule == "" && f.Stage == "verify" {
		f.Rule = verifyFailed
	}
	return err
}

// verifyFailed is the rule of an image that does not pass a verify command.
const verifyFailed = "verify_failed"

// command returns the argv of a command of the file, and the mounts of the referenced results.
func (m *making) command(ctx context.Context, c hclspec.Command) ([]string, []executor.Mount, error) {
	in := input.Inputs{}
	refer := in.Paths(m.t.Refs, m.env)
	vars := map[string]string{"SRC": shell.InsideWork}
	text := c.Shell.Expand(refer)
	for _, word := range c.Argv {
		text += word.Expand(refer)
	}
	if strings.Contains(text, "SITE") {
		site, err := m.site(ctx)
		if err != nil {
			return nil, nil, err
		}
		vars["SITE"] = site
	}
	if c.Argv == nil {
		return []string{"sh", "-euc", exports(vars) + c.Shell.Expand(refer)}, in.Mounts(), nil
	}
	argv := make([]string, len(c.Argv))
	for i, word := range c.Argv {
		argv[i] = sh.Substitute(word.Expand(refer), func(name string) (string, bool) {
			value, ok := vars[name]
			return value, ok
		})
	}
	return argv, in.Mounts(), nil
}

// exports returns shell code that sets variables. An image would keep variables of the container's configuration.
func exports(vars map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(&b, "export %s=%s\n", name, sh.Quote(vars[name]))
	}
	return b.String()
}

// digest returns the digest of a referenced result for the description of a step.
func (m *making) digest(a hclspec.Address) string {
	return "${" + m.t.Refs.Input(m.env, a).Digest + "}"
}
