package attribute

import (
	"encoding/json"
	"strings"

	"github.com/benchgraph/benchgraph/executor/kubernetes"
)

// Labels reads labels of Kubernetes' nodes, with their values.
func Labels(to *map[string]string) Reader {
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

// Taints reads taints of Kubernetes' nodes.
func Taints(to *[]string) Reader {
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
