package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// If a command of a fix changed nothing, the step exits with a status that programs do not use, after a line with this
// prefix.
const (
	exitNoEffect = 97
	noEffect     = "benchgraph: changed nothing: "
)

// watchSed is prepended to the commands of a fix. A sed -i whose expression matches no line leaves its files unchanged
// and succeeds. With watchSed, it ends the commands.
const watchSed = `
benchgraph_digests() {
	for benchgraph_sum in sha256sum md5sum cksum; do
		if command -v $benchgraph_sum >/dev/null; then break; fi
	done
	for benchgraph_word do
		if [ -f "$benchgraph_word" ]; then $benchgraph_sum <"$benchgraph_word"; fi
	done
}
sed() {
	benchgraph_edits=
	for benchgraph_word do
		case $benchgraph_word in -i* | --in-place* | -[nErsuz]i* | -[nErsuz][nErsuz]i*) benchgraph_edits=yes ;; esac
	done
	if [ -z "$benchgraph_edits" ]; then command sed "$@"; return; fi
	benchgraph_before=$(benchgraph_digests "$@")
	command sed "$@" || return
	if [ "$benchgraph_before" = "$(benchgraph_digests "$@")" ]; then
		echo "` + noEffect + `sed $*" >&2
		exit 97
	fi
}
`

// fix applies a fix as a layer of its own, and runs its verify.
func (m *making) fix(ctx context.Context, f fix.Due) error {
	name := f.Fix.Address.Name
	m.progress("fix " + name)
	if len(f.Pip) > 0 {
		if err := m.pin(ctx, f); err != nil {
			return err
		}
	}
	if len(f.Run)+len(f.Files)+len(f.Env) > 0 {
		if err := m.patch(ctx, f); err != nil {
			return err
		}
	}
	if f.Verify.Shell != nil || f.Verify.Argv != nil {
		if err := m.verify(ctx, f.Verify); err != nil {
			return f.About(err)
		}
	}
	m.env.Emit(f.Applied())
	return nil
}

// pin installs the pinned packages of a fix. It is the only step that always uses the network.
func (m *making) pin(ctx context.Context, f fix.Due) error {
	var versions []string
	err := m.step(ctx, "pins of "+f.Fix.Address.Name, func(d *cache.Description) {
		d.Add("pip", f.Pip...)
	}, func(ctx context.Context, labels map[string]string) (container.Image, error) {
		return m.change(ctx, changing{
			stage: "build", argv: append([]string{"sh", "-euc", pip + "install --no-cache-dir -- \"$@\"", "sh"},
				f.Pip...), network: true,
			proof: func(ctx context.Context, name string, _ map[string]string) error {
				changes, err := m.engine.Changes(ctx, name)
				versions = distributions(changes)
				return err
			},
		}, labels)
	})
	if err == nil && len(versions) > 0 {
		m.steps[len(m.steps)-1].Versions = versions
		m.say("resolved to %s\n", strings.Join(versions, ", "))
	}
	if errors.Is(err, errNoEffect) {
		return nil // the image already has these versions
	}
	return f.About(err)
}

var distInfo = lazyregexp.New(`/([^/]+)-([^/-]+)\.dist-info$`)

// distributions returns the packages that were added to a container, as name==version.
func distributions(changes []api.FilesystemChange) []string {
	var all []string
	for _, c := range changes {
		if found := distInfo().FindStringSubmatch(c.Path); found != nil && c.Kind == api.ChangeAdd {
			all = append(all, found[1]+"=="+found[2])
		}
	}
	slices.Sort(all)
	return all
}

// patch copies the files of a fix into the image and runs its commands. A fix that was learnt from another variant may
// have nothing to change in this one; its verify then passes without it. Any other fix that changes nothing has failed.
func (m *making) patch(ctx context.Context, f fix.Due) error {
	files, err := m.files(ctx, f)
	if err != nil {
		return f.Misplaced(err)
	}
	in := input.Inputs{}
	refer := in.Paths(m.t.Refs, m.env)
	describe := func(d *cache.Description) {
		for _, file := range files {
			d.Add("file", file.to, fmt.Sprintf("%x", sha256.Sum256(file.content)), fmt.Sprint(file.executable))
		}
		for _, run := range f.Run {
			d.Add("run", run.Expand(m.digest))
		}
		for _, name := range slices.Sorted(maps.Keys(f.Env)) {
			d.Add("env", name, f.Env[name].Expand(refer))
		}
	}
	c := changing{stage: "build", files: tarOf(files)}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		c.env = append(c.env, name+"="+f.Env[name].Expand(refer))
	}
	script, err := m.script(ctx, f, refer)
	if err != nil {
		return f.About(err)
	}
	c.argv, c.mounts, c.says = []string{"sh", "-euc", script}, in.Mounts(), strings.TrimPrefix(script, watchSed)
	c.proof = func(ctx context.Context, box string, labels map[string]string) error {
		changes, err := m.engine.Changes(ctx, box)
		if err != nil {
			return err
		}
		for _, file := range files { // Changes omits a file with the same size and time as in the image
			changes = append(changes, api.FilesystemChange{Kind: api.ChangeModify, Path: file.to})
		}
		changed, err := m.changed(ctx, box, changes)
		if err != nil {
			return err
		}
		if !changed && len(c.env) == 0 {
			return errNoEffect
		}
		return m.notePatched(changes, labels)
	}
	err = m.step(ctx, "fix "+f.Fix.Address.Name, describe,
		func(ctx context.Context, labels map[string]string) (container.Image, error) {
			if err := m.nextSecond(ctx); err != nil {
				return container.Image{}, err
			}
			return m.change(ctx, c, labels)
		})
	if errors.Is(err, errNoEffect) {
		return m.withoutEffect(ctx, f, err)
	}
	return f.About(err)
}

// nextSecond waits until new files get another time than all files of the image. Engines detect a changed file by its
// size and its time, which images store in whole seconds. It does not wait for an image from the future.
func (m *making) nextSecond(ctx context.Context) error {
	next := m.at.Created.Truncate(time.Second).Add(time.Second)
	select {
	case <-time.After(min(time.Until(next), time.Second)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withoutEffect handles a fix that changed nothing.
func (m *making) withoutEffect(ctx context.Context, f fix.Due, why error) error {
	if !f.When && (f.Verify.Shell != nil || f.Verify.Argv != nil) {
		if err := m.verify(ctx, f.Verify); err == nil {
			m.say("fix %s was learnt from another variant, and this one passes its verify as it is\n",
				f.Fix.Address.Name)
			m.note(stepRecord{What: "fix " + f.Fix.Address.Name,
				Skipped: "nothing to do: its verify passes without it"})
			m.ran.Undo(f.Fix.Address.String() + " had nothing to do")
			return nil
		}
	}
	remedy := "correct its commands, or declare with when where it applies"
	if len(m.at.Volumes) > 0 {
		remedy += "; what it writes below " + strings.Join(m.at.Volumes, ", ") +
			" is thrown away, since that is a VOLUME of the image"
	}
	return &engine.Failure{Failure: failure.Failure{Class: failure.Permanent, Rule: "fix_no_effect", Stage: "build",
		Message:  f.Fix.Address.String() + " changed nothing in the image",
		Evidence: strings.TrimPrefix(why.Error(), errNoEffect.Error()+": "), Remedy: remedy}}
}

// script returns the script of a fix, with each command in a subshell of its own.
func (m *making) script(ctx context.Context, f fix.Due, refer func(hclspec.Address) string) (string, error) {
	vars := map[string]string{"SRC": "/"}
	var body strings.Builder
	for _, run := range f.Run {
		text := run.Expand(refer)
		if strings.Contains(text, "SITE") {
			site, err := m.site(ctx)
			if err != nil {
				return "", err
			}
			vars["SITE"] = site
		}
		fmt.Fprintf(&body, "(\n%s\n)\n", text)
	}
	return watchSed + exports(vars) + cmp.Or(body.String(), ":\n"), nil
}

// fixedFile is a file that a fix adds to an image.
type fixedFile struct {
	to         string // absolute
	content    []byte
	executable bool
}

// files returns the files of a fix with their contents.
func (m *making) files(ctx context.Context, f fix.Due) ([]fixedFile, error) {
	var all []fixedFile
	for i, file := range f.Files {
		to := file.To.Expand(func(hclspec.Address) string { return "" })
		if rest, ok := strings.CutPrefix(to, "$SITE"); ok && (rest == "" || rest[0] == '/') {
			site, err := m.site(ctx)
			if err != nil {
				return nil, err
			}
			to = site + rest
		}
		if !path.IsAbs(to) || strings.Contains(to, "$") || path.Clean(to) == "/" {
			return nil, fmt.Errorf("file %q: in an image it goes to an absolute path, or to one that begins with $SITE",
				to)
		}
		if err := m.inVolume(path.Clean(to)); err != nil {
			return nil, f.About(err)
		}
		one := fixedFile{to: path.Clean(to), content: []byte(file.Content)}
		if file.From != nil {
			var err error
			if one.content, one.executable, err = m.content(file, f.Digests[i]); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// content reads the source of a fix's file, from the project or from the result of a node. Links may not lead out of
// these directories.
func (m *making) content(file hclspec.FixFile, digest string) ([]byte, bool, error) {
	dir, name := m.t.Dir, fix.Source(file)
	if first := file.From[0].Ref; first != (hclspec.Address{}) {
		in := m.t.Refs.Input(m.env, first)
		dir = in.Dir
		name = strings.TrimPrefix(file.From[1:].Expand(func(hclspec.Address) string { return "$" }), "/")
		if name == "" && len(in.Files) == 1 {
			name = in.Files[0].Path
		}
	}
	if name == "" || !filepath.IsLocal(name) {
		return nil, false, fmt.Errorf("file %s: an image takes files of the project and of the results of nodes",
			file.From)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return nil, false, err
	}
	content, err := root.ReadFile(name)
	if sum := sha256.Sum256(content); err == nil && fix.Source(file) != "" && digest != hex.EncodeToString(sum[:]) {
		err = workdir.InputChanged(name)
	}
	return content, info.Mode()&0o111 != 0, err
}

// tarOf packs files; it returns nil without files.
func tarOf(files []fixedFile) io.Reader {
	if len(files) == 0 {
		return nil
	}
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for _, f := range files {
		mode := int64(0o644)
		if f.executable {
			mode = 0o755
		}
		// Nothing can fail: the tar is in memory and the sizes are right.
		_ = out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.to, "/"), Mode: mode,
			Size: int64(len(f.content))})
		_, _ = out.Write(f.content)
	}
	_ = out.Close()
	return &b
}
