package remote

import (
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/remote/attribute"
)

// forKubernetes are the attributes of an executor for Kubernetes.
func (s *Settings) forKubernetes() map[string]attribute.Reader {
	const whose = "as Kubernetes takes it"
	k := &s.Kubernetes
	return map[string]attribute.Reader{
		"image": attribute.Image(&k.Image), "context": attribute.Word(&k.Context, whose),
		"namespace": attribute.Word(&k.Namespace, whose), "queue": attribute.Word(&k.Queue, whose),
		"service_account": attribute.Word(&k.ServiceAccount, whose), "pull_secret": attribute.Word(&k.PullSecret, whose),
		"env_from": attribute.Words(&k.EnvFrom, whose), "volumes": attribute.Volumes(&k.Volumes),
		"node_selector": attribute.Labels(&k.NodeSelector), "tolerations": attribute.Taints(&k.Tolerations),
	}
}

// checkKubernetes returns what is wrong with the attributes of an executor for Kubernetes together.
func (s *Settings) checkKubernetes(spec *hclspec.Spec) (all []mistake) {
	if s.Kubernetes.Image == "" {
		all = append(all, mistake{"", "An executor for Kubernetes needs an image, by its digest, with benchgraph in " +
			`it: image = "REGISTRY/NAME@sha256:…".`})
	}
	if spec.Store == nil || spec.Store.Dir == "" {
		return all
	}
	for at := range s.Kubernetes.Volumes {
		if strings.HasPrefix(spec.Store.Dir+"/", at+"/") {
			return all
		}
	}
	return append(all, mistake{"machine", "A Pod sees no directory of this machine, such as that of the file's " +
		`store. Name an S3-compatible one, store { url = "s3://BUCKET/PREFIX" }, or have volumes mount a claim ` +
		"with the store at its path."})
}
