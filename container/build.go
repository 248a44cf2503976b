package container

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/container/dockerfile"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/build"
)

// BuildSpec is the input of a build.
type BuildSpec struct {
	Dir        string                   // directory of the context
	Files      []dockerfile.ContextFile // files of the context, as dockerfile.Context lists them
	Dockerfile string                   // path below Dir
	Args       map[string]string        // values for ARG
	Labels     map[string]string
	Target     string // stage to build; empty: the last
	Network    bool   // the build's commands may use the network
	Log        io.Writer
	Pins       map[string]string // image ID in the engine for each of dockerfile.File.Images
}

// StepError is the error of a failed build step.
type StepError struct {
	Step   string // "[2/3] RUN make"
	Code   int    // exit status of the step's command; 0: no command failed
	Detail string
}

func (e *StepError) Error() string {
	text := e.Step + ": "
	if e.Code != 0 {
		return text + "exit status " + strconv.Itoa(e.Code)
	}
	return text + e.Detail
}

// Build builds an image with BuildKit, which Docker has had since 2018; other engines use their own builder. Its only
// base images are those of Pins. The image is Named. The engine owns the builder's cache and limits its size. Errors
// are *StepError, *dockerfile.ContextChanged, errors of the engine, or the cause of ctx.
func (e *Engine) Build(ctx context.Context, s BuildSpec) (Image, error) {
	text, err := dockerfile.Read(s.Dir, s.Dockerfile, s.Files)
	if err != nil {
		return Image{}, err
	}
	d, err := dockerfile.Parse(text, s.Args)
	if err != nil {
		return Image{}, err
	}
	if d.Outward != "" && !s.Network {
		return Image{},
			fmt.Errorf("%s: %s is fetched by the builder, which has no network here (network = true lets it)",
				s.Dockerfile, d.Outward)
	}
	names := map[string]string{}
	for ref, id := range s.Pins {
		if names[ref], err = e.nameOf(ctx, id); err != nil {
			return Image{}, err
		}
	}
	if text, err = d.Pinned(names); err != nil {
		return Image{}, err
	}
	if podman, err := e.IsPodman(ctx); err != nil || podman && !s.Network { // Podman's builder ignores the network mode
		return Image{}, cmp.Or(err, fmt.Errorf("%s: Podman lets the commands of a build reach the network, which they "+
			"may not here (network = true lets them; Docker keeps them from it)", s.Dockerfile))
	}
	b := &building{log: s.Log, names: map[string]string{}}
	if b.log == nil {
		b.log = io.Discard
	}
	_, err = long(ctx, e, "build image", func(ctx context.Context, a *api) (struct{}, error) {
		return struct{}{}, b.run(ctx, a, s, text)
	})
	switch {
	case b.unsent != nil:
		return Image{}, b.unsent
	case err != nil:
		return Image{}, err
	}
	return e.named(ctx, "build image", b.id)
}

// IsPodman reports whether the engine is Podman.
func (e *Engine) IsPodman(ctx context.Context) (bool, error) {
	v, err := call(ctx, e, "ask the container engine who it is",
		func(ctx context.Context, a *api) (types.Version, error) { return a.ServerVersion(ctx) })
	podman := func(c types.ComponentVersion) bool { return c.Name == "Podman Engine" }
	return slices.ContainsFunc(v.Components, podman), err
}

type building struct {
	log    io.Writer
	id     string
	names  map[string]string // digest of a step -> its name
	failed *StepError        // first failed step that the builder reported
	unsent error             // why the context could not be sent
	step   string            // the last step that began; only builders other than BuildKit set it
}

// run builds once. The context's tar archive is written while it is sent.
func (b *building) run(ctx context.Context, a *api, s BuildSpec, text []byte) error {
	name := filepath.ToSlash(filepath.Clean(s.Dockerfile))
	out, in := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := dockerfile.Send(in, s.Dir, s.Files, name, text)
		in.CloseWithError(cmp.Or(err, io.EOF))
		sent <- err
	}()
	options := build.ImageBuildOptions{
		Dockerfile: name, BuildArgs: argsOf(s.Args), Labels: s.Labels, Target: s.Target,
		Remove: true, ForceRemove: true, NetworkMode: "none", Version: build.BuilderBuildKit,
	}
	if s.Network {
		options.NetworkMode = "default"
	}
	resp, err := a.ImageBuild(ctx, out, options)
	if err == nil {
		defer resp.Body.Close()
		err = messages(resp.Body, b.hear)
	}
	out.CloseWithError(context.Canceled) // ends the sender if the engine has not read everything
	if unsent := <-sent; unsent != nil && !errors.Is(unsent, context.Canceled) {
		b.unsent = unsent
	}
	if said, ok := errors.AsType[*EngineError](err); ok {
		return b.failure(said)
	}
	return err
}

func (b *building) hear(m message) {
	switch m.ID {
	case "moby.image.id":
		var image build.Result
		if json.Unmarshal(m.Aux, &image) == nil {
			b.id = image.ID
		}
	case "moby.buildkit.trace":
		var trace []byte
		if json.Unmarshal(m.Aux, &trace) == nil { // base64
			b.trace(trace)
		}
	default:
		if m.Stream != "" {
			if step := stepLine().FindStringSubmatch(m.Stream); step != nil {
				b.step = strings.TrimSpace(step[1])
			}
			b.print(m.Stream)
		} else {
			var image build.Result
			if json.Unmarshal(m.Aux, &image) == nil && image.ID != "" {
				b.id = image.ID
			}
		}
	}
}

func (b *building) print(text string) { _, _ = io.WriteString(b.log, text) } // a failing log does not stop a build

var (
	exitCode = lazyregexp.New(`(?:exit code:|non-zero code:|exit status) (\d+)`)
	// beginning of a step in the output of builders other than BuildKit: Docker's, then Podman's
	stepLine = lazyregexp.New(`^(?:Step|(?:\[\d+/\d+\] )?STEP) (\d+/\d+ ?: .*)`)
)

// failure adds the step to an engine's error.
func (b *building) failure(said *EngineError) error {
	out := b.failed
	if out == nil && b.step != "" {
		out = &StepError{Step: b.step, Detail: printable.Excerpt(said.Message)}
	}
	if out == nil {
		return said
	}
	out.Code = said.Code
	if m := exitCode().FindStringSubmatch(said.Message); m != nil {
		out.Code, _ = strconv.Atoi(m[1]) // an invalid number counts as 0
	}
	if out.Code == 0 && slices.ContainsFunc(meanings, func(m meaning) bool {
		return says(said.Message+out.Detail, m.words)
	}) {
		return said // a full disk, for example, is not the step's fault
	}
	return out
}

// trace reads a report of BuildKit: a StatusResponse of its control API, in the wire format of protocol buffers.
//
//	StatusResponse { Vertex 1; VertexStatus 2; VertexLog 3 }
//	Vertex         { digest 1; name 3; started 5; error 7 }
//	VertexLog      { vertex 1; msg 4 }
func (b *building) trace(status []byte) {
	for number, value := range fields(status) {
		switch number {
		case 1:
			var digest, name, failure string
			started := false
			for number, value := range fields(value) {
				switch number {
				case 1:
					digest = string(value)
				case 3:
					name = string(value)
				case 5:
					started = true
				case 7:
					failure = string(value)
				}
			}
			if _, known := b.names[digest]; !known && started {
				b.names[digest] = name
				b.print(name + "\n")
			}
			if failure != "" && b.failed == nil && !strings.Contains(failure, "context canceled") {
				b.failed = &StepError{Step: printable.Excerpt(name), Detail: printable.Excerpt(failure)}
			}
		case 3:
			for number, value := range fields(value) {
				if number == 4 {
					b.print(string(value))
				}
			}
		}
	}
}

// fields yields the fields of a message that are strings, bytes or messages. It stops at malformed data.
func fields(message []byte) func(func(number uint64, value []byte) bool) {
	return func(yield func(uint64, []byte) bool) {
		for len(message) > 0 {
			key, n := binary.Uvarint(message)
			if n <= 0 {
				return
			}
			message = message[n:]
			size := uint64(0)
			switch key & 7 {
			case 0:
				if _, n = binary.Uvarint(message); n <= 0 {
					return
				}
				message = message[n:]
				continue
			case 1:
				size = 8
			case 5:
				size = 4
			case 2:
				if size, n = binary.Uvarint(message); n <= 0 {
					return
				}
				message = message[n:]
			default:
				return
			}
			if size > uint64(len(message)) {
				return
			}
			if key&7 == 2 && !yield(key>>3, message[:size]) {
				return
			}
			message = message[size:]
		}
	}
}

// argsOf converts args to the type of the API.
func argsOf(args map[string]string) map[string]*string {
	out := make(map[string]*string, len(args))
	for name, value := range maps.All(args) {
		out[name] = &value
	}
	return out
}
