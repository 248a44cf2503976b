package declared

import (
	"github.com/benchgraph/benchgraph/executor/modal"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/remote/attribute"
)

// forModal returns the readers of the attributes of an executor for Modal.
func (s *Executor) forModal() map[string]attribute.Reader {
	const whose = "as Modal takes it"
	m := &s.Modal
	m.App = "benchgraph"
	return map[string]attribute.Reader{
		"app": attribute.Word(&m.App, whose), "environment": attribute.Word(&m.Environment, whose),
		"image": attribute.Image(&m.Image), "image_secret": attribute.Word(&m.ImageSecret, whose),
		"gpu": attribute.GPU(&m.GPU), "secrets": attribute.Words(&m.Secrets, whose),
		"volumes": attribute.Volumes(&m.Volumes), "cloud": attribute.Word(&m.Cloud, whose),
		"regions": attribute.Words(&m.Regions, whose),
	}
}

// checkModal returns mistakes of the attributes of an executor for Modal together.
func (s *Executor) checkModal(spec *hclspec.Spec) (all []mistake) {
	if s.Modal.Image == "" {
		all = append(all, mistake{"", "An executor for Modal needs an image, by its digest, with benchgraph in it: " +
			`image = "REGISTRY/NAME@sha256:…".`})
	}
	if s.Time > modal.LongestTime {
		all = append(all, mistake{"time", "time: Modal lets a sandbox have 24 hours at most."})
	}
	if spec.Store != nil && spec.Store.Dir != "" {
		all = append(all, mistake{"machine", "A sandbox of Modal sees no directory of this machine, where the store " +
			`is that the file declares. Name an S3-compatible one: store { url = "s3://BUCKET/PREFIX" }.`})
	}
	return all
}
