package containertest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// imageLabel marks images for tests. They stay in the engine, as every test would make the same ones.
const imageLabel = "io.benchgraph.test"

// Busybox returns the ID of an image with busybox, a link in /bin for each of its commands, /tmp and /etc/passwd. It
// makes the image from this machine's /bin/busybox, which must be static, unless the engine has the image.
func Busybox(t testing.TB, e *container.Engine) string {
	t.Helper()
	label := fmt.Sprintf("%s=busybox-%.16x", imageLabel, sha256.Sum256(busybox(t)))
	if id := labelled(t, e, label); id != "" {
		return id
	}
	return Load(t, e, bytes.NewReader(BusyboxFiles(t)), "LABEL "+label, "ENV PATH=/bin")
}

const busyboxProgram = "/bin/busybox"

func busybox(t testing.TB) []byte {
	t.Helper()
	binary, err := os.ReadFile(busyboxProgram)
	if err != nil {
		needtest.Missing(t, "no busybox (Debian: busybox-static): %v", err)
	}
	return binary
}

// labelled returns the test image with a label, or "". It skips images that were made from a test image, which have
// more labels. Tests that run in parallel may each have made one; labelled returns the oldest.
func labelled(t testing.TB, e *container.Engine, label string) string {
	t.Helper()
	var images []struct {
		ID, ParentID string
		Created      int64
		Labels       map[string]string
	}
	if err := dial(e.Host()).get("/images/json?"+filters(map[string][]string{"label": {label}}), &images); err != nil {
		t.Fatal(err)
	}
	found, created := "", int64(0)
	for _, image := range images {
		if image.ParentID != "" || len(image.Labels) != 1 {
			continue
		}
		if found == "" || image.Created < created || image.Created == created && image.ID < found {
			found, created = image.ID, image.Created
		}
	}
	return found
}

// Load makes an image from a tar archive of a root file system and lines of a Dockerfile, as a user does. It returns
// the image's ID.
func Load(t testing.TB, e *container.Engine, root io.Reader, lines ...string) string {
	t.Helper()
	query := url.Values{"fromSrc": {"-"}, "changes": lines}
	var answer struct{ Status, Error string }
	if err := dial(e.Host()).within(5*time.Minute, http.MethodPost, "/images/create?"+query.Encode(), root,
		&answer); err != nil || answer.Error != "" {
		t.Fatal(err, answer.Error)
	}
	return answer.Status
}

// BusyboxFiles returns the files of Busybox as a tar archive.
func BusyboxFiles(t testing.TB) []byte {
	t.Helper()
	binary := busybox(t)
	names, err := exec.Command(busyboxProgram, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(h tar.Header, text []byte) {
		h.Size = int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	add(tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755}, nil)
	add(tar.Header{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755}, nil)
	add(tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil)
	add(tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644},
		[]byte("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"))
	add(tar.Header{Typeflag: tar.TypeReg, Name: "etc/group", Mode: 0o644}, []byte("root:x:0:\nnogroup:x:65534:\n"))
	add(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, binary)
	for _, name := range strings.Fields(string(names)) {
		if name != "busybox" {
			add(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox", Mode: 0o777}, nil)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
