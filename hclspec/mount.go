package hclspec

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/project"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Mount is a directory of the host, or a volume of the container engine, that commands use in place. It is never
// copied.
type Mount struct {
	Block
	// as written: an absolute path, one that begins with ~, one below the project that begins with a dot, or the name
	// of a volume
	Source   string
	Volume   bool
	Target   string // absolute path in containers
	Writable bool
	Identity string       // stands for the content in keys
	Digests  []FileDigest // of the files; empty: the identity is not verified
	Variable string       // environment variable of commands with the path
}

// FileDigest is the SHA-256, in 64 digits, that a file of a mount must have.
type FileDigest struct {
	Path   string // slash-separated, below the mount
	SHA256 string
}

func mountSchema() *eval.Schema {
	return &eval.Schema{Kind: "mount", Label: true, Key: []string{"target", "read_only", "identity"},
		Free: []string{"for_each", "source"}}
}

// maxDigests bounds the files of a mount that are verified.
const maxDigests = 100_000

var (
	volumeName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	digestLine = lazyregexp.New(`^([0-9a-f]{64}) [ *](.+)$`)
)

func decodeMount(r reader, b Block) {
	r.Need("source", "a directory of this machine, or the name of a volume")
	r.Need("target", "its path in containers, such as \"/models\"")
	r.Need("identity",
		"a text for the content in keys: a revision, or file(\"models.sha256\") with the output of sha256sum")
	m := Mount{Block: b, Source: r.Str("source"), Target: r.Str("target"), Writable: r.Has("read_only") &&
		!r.Bool("read_only")}
	m.Variable = "MOUNT_" + strings.ToUpper(strings.ReplaceAll(b.Address.Name, "-", "_"))
	switch {
	case m.Source == "" || strings.HasPrefix(m.Source, "/") || m.Source == "~" || strings.HasPrefix(m.Source, "~/") ||
		m.Source == "." ||
		strings.HasPrefix(m.Source, "./") || strings.HasPrefix(m.Source, "../"):
	case volumeName().MatchString(m.Source):
		m.Volume = true
	default:
		r.Fail(r.At("source"), "Invalid source",
			"%q is neither the name of a volume nor a path that begins with /, ~/ or ./.", m.Source)
	}
	if t := m.Target; t != "" && !freeInContainers(t) {
		r.Fail(r.At("target"), "Invalid target",
			"%q must be an absolute path of a directory in containers, in its shortest form, such as \"/models\". "+
				"/benchgraph, /proc, /sys and /dev belong to others.", t)
	}
	m.identify(r)
	r.l.spec.Mounts = append(r.l.spec.Mounts, m)
}

// freeInContainers reports whether a path is absolute, in its shortest form, and not reserved in containers.
func freeInContainers(t string) bool {
	for _, taken := range []string{"/benchgraph", "/proc", "/sys", "/dev"} {
		if under(t, taken) {
			return false
		}
	}
	return path.IsAbs(t) && path.Clean(t) == t && t != "/"
}

// under reports whether a path is a directory, or below it.
func under(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// identify reads the identity: a list of digests as sha256sum writes it, or a revision in one line.
func (m *Mount) identify(r reader) {
	text := strings.TrimSpace(r.Str("identity"))
	lines := strings.Split(text, "\n")
	if !digestLine().MatchString(strings.TrimSpace(lines[0])) {
		if len(lines) > 1 {
			r.Fail(r.At("identity"), "Invalid identity",
				"identity must be a revision in one line, or what sha256sum writes: 64 digits, two spaces and a "+
					"path in each line.")
		} else if text == "" && r.Has("identity") {
			if v, known := r.Value("identity"); known && !v.IsNull() && v.Type().IsPrimitiveType() {
				r.Fail(r.At("identity"), "Invalid identity", "identity is empty.")
			}
		}
		m.Identity = text
		return
	}
	if m.Volume {
		r.Fail(r.At("identity"), "Digests of a volume",
			"The files of a volume cannot be read from here. Give it a revision, or mount a directory.")
		return
	}
	if len(lines) > maxDigests {
		r.Fail(r.At("identity"), "Invalid identity", "There are %d files; %d can be verified. Give a revision.",
			len(lines), maxDigests)
		return
	}
	for i, line := range lines {
		parts := digestLine().FindStringSubmatch(strings.TrimSpace(line))
		if parts == nil {
			r.Fail(r.At("identity"), "Invalid identity", "Line %d is not 64 digits, two spaces and a path.", i+1)
			return
		}
		name, err := project.Clean(parts[2])
		if err != nil || name == "." {
			r.Fail(r.At("identity"), "Invalid identity", "Line %d: %q is no path below the mount.", i+1, parts[2])
			return
		}
		m.Digests = append(m.Digests, FileDigest{name, parts[1]})
	}
	slices.SortFunc(m.Digests, func(a, b FileDigest) int { return strings.Compare(a.Path, b.Path) })
	h := sha256.New()
	for i, d := range m.Digests {
		if i > 0 && m.Digests[i-1].Path == d.Path && m.Digests[i-1] != d {
			r.Fail(r.At("identity"), "Invalid identity", "%q has two digests.", d.Path)
		}
		h.Write([]byte(d.SHA256 + "  " + d.Path + "\n"))
	}
	m.Identity = "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// mounts reads the mounts that a block names. Two of them cannot be in the same place.
func (r reader) mounts() []Address {
	all := r.refs("mounts", "mount")
	for i, a := range all {
		for _, b := range all[:i] {
			one, other := r.l.mountAt(a), r.l.mountAt(b)
			switch {
			case one == nil || other == nil || one.Target == "" || other.Target == "":
			case one.Variable == other.Variable:
				r.Fail(r.At("mounts"), "Two mounts of one name", "%s and %s would both be $%s.", b, a, one.Variable)
			case under(one.Target, other.Target) || under(other.Target, one.Target):
				r.Fail(r.At("mounts"), "Two mounts in one place", "%s is at %s, and %s at %s.", b, other.Target, a,
					one.Target)
			}
		}
	}
	return all
}

// mountAt returns the mount of an address; nil: there is none, or it has a mistake.
func (l *loader) mountAt(a Address) *Mount {
	if i := slices.IndexFunc(l.spec.Mounts, func(m Mount) bool { return m.Address == a }); i >= 0 {
		return &l.spec.Mounts[i]
	}
	return nil
}
