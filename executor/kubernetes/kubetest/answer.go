package kubetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// Answer starts a server that answers as handler, and names it in KUBECONFIG, with a token and a namespace.
func Answer(t *testing.T, token, namespace string, handler http.HandlerFunc) (kubeconfig string) {
	t.Helper()
	server := httptest.NewTLSServer(handler) // clients send tokens by HTTPS only
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBECONFIG", kubeconfig)
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": server.URL,
			"insecure-skip-tls-verify": true}}},
		"users": []any{map[string]any{"name": "c", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "c",
			"namespace": namespace}}},
	})
	if err == nil {
		err = os.WriteFile(kubeconfig, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// Refuse answers with an error, as an API server does.
func Refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code,
		reason, message)
}
