package hclspec

import (
	"strings"

	"github.com/distribution/reference"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func imageSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "image", Label: true, Key: []string{"from", "install", "fixes", "verify", "network", "push"},
		Free: []string{"for_each"},
		Blocks: []*eval.Schema{
			{Kind: "build", Key: []string{"context", "dockerfile", "args", "target"}},
			{Kind: "overlay", Key: []string{"source", "over", "paths"}},
		},
	}
}

func decodeImage(r reader, b Block) {
	i := Image{
		Block: b, Install: r.refs("install", "wheel", "fetch", "task"), Fixes: r.refs("fixes", "fix"),
		Verify: r.command("verify"), Network: r.Bool("network"), Push: r.imageName("push"), FromRange: r.At("from"),
		PushRange: r.At("push"),
	}
	i.From, i.Base = r.from()
	if named, err := reference.ParseNormalizedNamed(i.Push); err == nil {
		switch _, digested := named.(reference.Digested); {
		case digested:
			r.Fail(i.PushRange, "Push to a digest",
				"A digest is found out by pushing. Push to a tag: push = \"%s:NAME\".", named.Name())
		case reference.IsNameOnly(named):
			r.Fail(i.PushRange, "Push without a tag",
				"push = %q would overwrite the tag latest. Name one: push = \"%s:%s\".", i.Push, i.Push, exampleTag(b))
		}
	}
	if build := r.Block.Block("build"); build != nil {
		r := r.nested(build)
		i.Build = &ImageBuild{
			Context: r.Inside("context", "."), Dockerfile: r.Inside("dockerfile", "Dockerfile"),
			Args: mapOf(r, "args", r.Literal), Target: r.Str("target"),
			Range: build.Range,
		}
	}
	if overlay := r.Block.Block("overlay"); overlay != nil {
		i.Overlay = r.nested(overlay).imageOverlay()
	}
	switch given := r.Has("from"); {
	case given && i.Build != nil:
		r.Fail(b.Range, "Where does the image come from?",
			"%s has both from and a build block. Let the Dockerfile say FROM, or leave the build block out.", r.Title())
	case !given && i.Build == nil && !r.Block.Meant("from") && !r.Block.Meant("build"):
		r.Fail(b.Range, "Where does the image come from?", "%s needs either from = \"IMAGE\" or a build block.",
			r.Title())
	}
	r.l.spec.Images = append(r.l.spec.Images, i)
}

// imageOverlay reads the files that are laid over a package of the image.
func (r reader) imageOverlay() *ImageOverlay {
	r.Need("source", "the tree whose files the package gets")
	r.Need("over", "the tree that the package in the image was made from")
	r.Need("paths", "patterns of the files that are laid over the package")
	return &ImageOverlay{Source: r.ref("source", "source"), Over: r.ref("over", "source"), Paths: r.Globs("paths")}
}

// exampleTag returns a tag that differs between the instances of a block.
func exampleTag(b Block) string {
	if b.Address.Keyed {
		return "${each.key}"
	}
	return b.Address.Name
}

// from reads the base of an image: the name of an image in a registry, or a node that makes an image.
func (r reader) from() (string, Address) {
	v, ok := r.Value("from")
	if !ok {
		return "", Address{}
	}
	if v.Type() == cty.String && !v.IsNull() {
		if text, whole := splitTokens(v.AsString()); whole && len(text.Refs()) == 0 {
			return r.imageName("from"), Address{}
		}
	}
	return "", r.only("from", v, []string{"image", "task", "fetch"})
}

// imageName reads the name of an image in a registry. A slash in its tag, which may come from the key of a candidate,
// becomes a hyphen.
func (r reader) imageName(name string) string {
	given := r.Str(name)
	if given == "" {
		if _, ok := r.Value(name); ok && !r.l.shadow {
			r.Fail(r.At(name), "Invalid image name", "%s is empty. %s", name, howImagesAreNamed)
		}
		return ""
	}
	_, err := reference.ParseNormalizedNamed(given)
	if err == nil || strings.ContainsAny(given, "^~") { // a revision that is not resolved yet, and is checked later
		return given
	}
	if i := strings.LastIndexByte(given, ':'); i >= 0 && strings.Contains(given[:i], "/") {
		flat := given[:i] + strings.ReplaceAll(given[i:], "/", "-")
		if _, err := reference.ParseNormalizedNamed(flat); err == nil {
			return flat
		}
	}
	remedy := howImagesAreNamed
	switch {
	case strings.Contains(given, "://"):
		remedy = "The name of an image has no scheme: write what follows ://."
	case strings.ToLower(given) != given:
		remedy = "Names of repositories are in lower case; only tags may have capitals."
	}
	r.Fail(r.At(name), "Invalid image name", "%q is not the name of an image: %s. %s", given, err, remedy)
	return ""
}

const howImagesAreNamed = `An image is named as for docker pull: "debian:12", "registry.example/team/app:v1".`
