package remote

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/benchgraph/benchgraph/executor/kubernetes"
)

func (s *Settings) forKubernetes() map[string]reader {
	k := &s.Kubernetes
	return map[string]reader{
		"image": word(&k.Image), "context": word(&k.Context), "namespace": word(&k.Namespace), "queue": word(&k.Queue),
		"service_account": word(&k.ServiceAccount), "pull_secret": word(&k.PullSecret),
		"node_selector": table(&k.NodeSelector, func(string) bool { return true },
			`labels with their values are expected, such as { "gpu" = "h100" }`),
		"tolerations": list(&k.Tolerations, kubernetes.IsToleration,
			`taints are expected as kubectl writes them, such as ["nvidia.com/gpu:NoSchedule"]`),
		"env_from": list(&k.EnvFrom, isWord, `names of Secrets are expected, such as ["s3-login"]`),
		"volumes": table(&k.Volumes, func(at string) bool { return path.IsAbs(at) && path.Clean(at) != "/" },
			`names of claims by absolute path are expected, such as { "/models" = "models" }`),
	}
}

// neededByKubernetes says which attribute is missing.
func (s *Settings) neededByKubernetes() string {
	if s.Kubernetes.Image == "" {
		return `It names no image. Pods are made of one that has benchgraph and all that the blocks run: image = "…".`
	}
	return ""
}

// isWord reports whether a text can be a name.
func isWord(text string) bool {
	return text != "" && !strings.HasPrefix(text, "-") && !strings.ContainsAny(text, " \t\r\n\x00")
}

// list reads texts, each of which must be right.
func list(to *[]string, right func(string) bool, expected string) reader {
	return func(raw json.RawMessage) string {
		if json.Unmarshal(raw, to) != nil {
			return expected
		}
		for _, text := range *to {
			if !isWord(text) || !right(text) {
				return expected
			}
		}
		return ""
	}
}

// table reads texts by name; each name must be right.
func table(to *map[string]string, right func(string) bool, expected string) reader {
	return func(raw json.RawMessage) string {
		if json.Unmarshal(raw, to) != nil {
			return expected
		}
		for name, text := range *to {
			if !isWord(name) || !right(name) || strings.ContainsAny(text, "\x00\r\n") {
				return expected
			}
		}
		return ""
	}
}
