package attribute

import (
	"encoding/json"
	"strings"

	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/hclspec"
)

// Kubernetes are the attributes of an executor for Kubernetes.
func Kubernetes(k *kubernetes.Asks) map[string]Reader {
	const whose = "as Kubernetes takes it"
	return map[string]Reader{
		"image": Image(&k.Image), "context": Word(&k.Context, whose), "namespace": Word(&k.Namespace, whose),
		"queue": Word(&k.Queue, whose), "service_account": Word(&k.ServiceAccount, whose),
		"pull_secret": Word(&k.PullSecret, whose), "env_from": Words(&k.EnvFrom, whose), "volumes": Volumes(&k.Volumes),
		"node_selector": labels(&k.NodeSelector), "tolerations": taints(&k.Tolerations),
	}
}

// KubernetesLacks returns what an executor for Kubernetes lacks, a sentence each. store is that of the file; nil if
// there is none.
func KubernetesLacks(k *kubernetes.Asks, store *hclspec.Store) (all []string) {
	if k.Image == "" {
		all = append(all, "An executor for Kubernetes needs an image, by its digest, with benchgraph in it: "+
			`image = "REGISTRY/NAME@sha256:…".`)
	}
	if store == nil || store.Dir == "" {
		return all
	}
	for at := range k.Volumes {
		if strings.HasPrefix(store.Dir+"/", at+"/") {
			return all
		}
	}
	return append(all, "A Pod sees no directory of this machine, such as that of the file's store. "+
		`Name an S3-compatible one, store { url = "s3://BUCKET/PREFIX" }, or have volumes mount a claim `+
		"with the store at its path.")
}

// labels reads labels of Kubernetes' nodes, with their values.
func labels(to *map[string]string) Reader {
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

// taints reads taints of Kubernetes' nodes.
func taints(to *[]string) Reader {
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
