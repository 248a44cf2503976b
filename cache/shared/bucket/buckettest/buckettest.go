// Package buckettest starts a server of buckets for tests that lends credentials: MinIO, which "make minio" builds. It
// keeps everything in a directory of the test.
package buckettest

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The credentials with all rights, and the only bucket.
const (
	User   = "team"
	Secret = "secret-of-the-team"
	Bucket = "team"
)

// Start starts the server on an address of this machine, until the test ends, and returns its URL.
func Start(t testing.TB, host string) string {
	t.Helper()
	program := minio(t)
	if _, err := os.Stat(program); err != nil {
		// CI has no time to build it, either
		t.Skipf("%s is not there: make minio builds it, in minutes", program)
	}
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, Bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "server", "--quiet", "--address", address, dir)
	cmd.Env = append(os.Environ(), "MINIO_ROOT_USER="+User, "MINIO_ROOT_PASSWORD="+Secret, "MINIO_UPDATE=off",
		"MINIO_BROWSER=off", "HOME="+t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	url := "http://" + address
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if r, err := http.Get(url + "/minio/health/ready"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return url
			}
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatal("MinIO does not answer")
		}
	}
}

// minio returns the path of the server that the Makefile builds, in the module of the test.
func minio(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	return filepath.Join(dir, "bin", "minio", "minio")
}
