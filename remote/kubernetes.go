package remote

import (
	"encoding/json"
	"strings"

	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/hclspec"
)

// forKubernetes are the attributes of an executor for Kubernetes.
func (s *Settings) forKubernetes() map[string]reader {
	k := &s.Kubernetes
	return map[string]reader{
		"image": digested(&k.Image), "context": named(&k.Context), "namespace": named(&k.Namespace),
		"queue": named(&k.Queue), "service_account": named(&k.ServiceAccount), "pull_secret": named(&k.PullSecret),
		"env_from": names(&k.EnvFrom), "volumes": volumes(&k.Volumes), "node_selector": labels(&k.NodeSelector),
		"tolerations": taints(&k.Tolerations),
	}
}

// checkKubernetes returns what is wrong with the attributes of an executor for Kubernetes together.
func (s *Settings) checkKubernetes(spec *hclspec.Spec) (all []mistake) {
	if s.Kubernetes.Image == "" {
		all = append(all, mistake{"", "An executor for Kubernetes needs an image, by its digest, with benchgraph in " +
			`it: image = "REGISTRY/NAME@sha256:…".`})
	}
	if spec.Store != nil && spec.Store.Dir != "" {
		for at := range s.Kubernetes.Volumes {
			if at == spec.Store.Dir || strings.HasPrefix(spec.Store.Dir, at+"/") {
				return all
			}
		}
		all = append(all, mistake{"machine", "A Pod sees no directory of this machine, such as that of the file's " +
			`store. Name an S3-compatible one, store { url = "s3://BUCKET/PREFIX" }, or have volumes mount a claim ` +
			"with the store at its path."})
	}
	return all
}

func labels(to *map[string]string) reader {
	return func(raw json.RawMessage) string {
		ok := json.Unmarshal(raw, to) == nil
		for name, value := range *to {
			ok = ok && isWord(name) && !strings.ContainsAny(value, " \t\r\n\x00")
		}
		if !ok {
			return `labels of nodes with their values are expected, such as { "gpu" = "h100" }`
		}
		return ""
	}
}

func taints(to *[]string) reader {
	return func(raw json.RawMessage) string {
		ok := json.Unmarshal(raw, to) == nil
		for _, text := range *to {
			ok = ok && isWord(text) && kubernetes.IsToleration(text)
		}
		if !ok {
			return `taints are expected as kubectl writes them, such as ["nvidia.com/gpu:NoSchedule"]`
		}
		return ""
	}
}
