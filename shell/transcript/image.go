package transcript

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/hclspec"
)

// Unpacked notes that wheels were unpacked into a container that becomes an image.
func (t *Transcript) Unpacked(base string, wheels []string, dir string) {
	for _, name := range wheels {
		t.Did("unpack", base, name, dir)
	}
}

// Built notes that an image was built from a Dockerfile; without an image: that the build failed.
func (t *Transcript) Built(image, dir string, b *hclspec.ImageBuild, network bool, pins map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		t.Section("", "by hand: FROM "+name+" was the image "+pins[name], false)
	}
	t.Section("", "the files of "+dir+" are taken as they are now", false)
	words := []string{"docker", "build", "-q", "-f", filepath.Join(dir, b.Dockerfile)}
	for _, name := range slices.Sorted(maps.Keys(b.Args)) {
		words = append(words, "--build-arg", name+"="+b.Args[name])
	}
	if b.Target != "" {
		words = append(words, "--target", b.Target)
	}
	if !network {
		words = append(words, "--network", "none")
	}
	t.Made(image, append(words, dir)...)
}

// Committed notes that a container became an image with a configuration.
func (t *Transcript) Committed(image, base string, c *container.Config) {
	list := func(words []string) string {
		text, _ := json.Marshal(append([]string{}, words...)) // strings cannot fail
		return string(text)
	}
	var changes []string
	if len(c.Entrypoint) > 0 { // otherwise the container has none
		changes = append(changes, "ENTRYPOINT "+list(c.Entrypoint))
	}
	changes = append(changes, "CMD "+list(c.Cmd))
	if c.User != "" {
		changes = append(changes, "USER "+c.User)
	}
	if c.WorkingDir != "" {
		changes = append(changes, "WORKDIR "+c.WorkingDir)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`)
	for _, v := range c.Env {
		name, value, _ := strings.Cut(v, "=")
		changes = append(changes, "ENV "+name+`="`+quote.Replace(value)+`"`)
	}
	words := []string{"commit", base}
	for _, change := range changes {
		words = append(words, "--change", change)
	}
	t.Made(image, words...)
}
