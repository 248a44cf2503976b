package remote

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/distribution/reference"

	"github.com/benchgraph/benchgraph/executor/modal"
	"github.com/benchgraph/benchgraph/hclspec"
)

// forModal are the attributes of an executor for Modal.
func (s *Settings) forModal() map[string]reader {
	m := &s.Modal
	m.App = "benchgraph"
	return map[string]reader{
		"app": named(&m.App), "environment": named(&m.Environment), "image": digested(&m.Image),
		"image_secret": named(&m.ImageSecret), "gpu": gpu(&m.GPU), "secrets": names(&m.Secrets),
		"volumes": volumes(&m.Volumes), "cloud": named(&m.Cloud), "regions": names(&m.Regions),
	}
}

// checkModal returns what is wrong with the attributes of an executor for Modal together.
func (s *Settings) checkModal(spec *hclspec.Spec) (all []mistake) {
	if s.Modal.Image == "" {
		all = append(all, mistake{"", "An executor for Modal needs an image, by its digest, with benchgraph in it: " +
			`image = "REGISTRY/NAME@sha256:…".`})
	}
	if s.Time > modal.LongestTime {
		all = append(all, mistake{"time", "time: Modal lets a sandbox have 24 hours at most."})
	}
	if spec.Store != nil && spec.Store.Dir != "" {
		all = append(all, mistake{"machine", "A sandbox of Modal sees no directory of this machine, where the store of " +
			`the file is. Name an S3-compatible one: store { url = "s3://BUCKET/PREFIX" }.`})
	}
	return all
}

func named(to *string) reader {
	return func(raw json.RawMessage) string {
		if why := text(to)(raw); why != "" {
			return why
		}
		if !isWord(*to) {
			return "a name without spaces is expected"
		}
		return ""
	}
}

func names(to *[]string) reader {
	return func(raw json.RawMessage) string {
		ok := json.Unmarshal(raw, to) == nil
		for _, name := range *to {
			ok = ok && isWord(name)
		}
		if !ok {
			return "a list of names without spaces is expected"
		}
		return ""
	}
}

func digested(to *string) reader {
	return func(raw json.RawMessage) string {
		ok := text(to)(raw) == ""
		if name, err := reference.ParseNormalizedNamed(*to); err == nil && ok {
			_, ok = name.(reference.Digested)
		} else {
			ok = false
		}
		if !ok {
			return `an image by its digest is expected, such as "ghcr.io/org/bench@sha256:…"; a tag may name another tomorrow`
		}
		return ""
	}
}

func gpu(to *string) reader {
	return func(raw json.RawMessage) string {
		if why := named(to)(raw); why != "" || strings.Contains(*to, ":") {
			return `the kind of a GPU is expected, such as "H100"; what is measured says how many`
		}
		return ""
	}
}

func volumes(to *map[string]string) reader {
	return func(raw json.RawMessage) string {
		ok := json.Unmarshal(raw, to) == nil
		for at, name := range *to {
			ok = ok && path.IsAbs(at) && path.Clean(at) == at && at != "/" && isWord(name)
		}
		if !ok {
			return `names of volumes by absolute path are expected, such as { "/models" = "models" }`
		}
		return ""
	}
}
