//go:build linux

package apptainer

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	imageapi "github.com/docker/docker/api/types/image"

	"github.com/benchgraph/benchgraph/executor/apptainer/images"
)

func (e *Engine) listImages(r *http.Request) (any, error) {
	chosen, err := filters.FromJSON(r.URL.Query().Get("filters"))
	if err != nil {
		return nil, images.Refused(http.StatusBadRequest, err.Error())
	}
	all, err := e.images.All()
	list := []imageapi.Summary{}
	for _, i := range all {
		by := func(repository string) bool {
			return slices.ContainsFunc(i.Names, func(n string) bool { return strings.HasPrefix(n, repository+":") })
		}
		if chosen.MatchKVList("label", i.Labels) && (chosen.Len() == 0 || !chosen.Contains("reference") ||
			slices.ContainsFunc(chosen.Get("reference"), by)) {
			list = append(list, imageapi.Summary{ID: i.ID, RepoTags: i.Names, RepoDigests: i.Digests, Labels: i.Labels,
				Size: i.Size, Created: i.Created.Unix()})
		}
	}
	return list, err
}

func (e *Engine) inspectImage(r *http.Request) (any, error) {
	i, err := e.images.Find(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var c struct {
		OS, Architecture string
		Config           json.RawMessage
	}
	if err := json.Unmarshal(i.Config, &c); err != nil {
		return nil, err
	}
	return map[string]any{"Id": i.ID, "RepoTags": i.Names, "RepoDigests": i.Digests, "Size": i.Size,
		"Created": i.Created.Format(time.RFC3339Nano), "Os": c.OS, "Architecture": c.Architecture, "Config": c.Config,
		"RootFS": map[string]any{"Type": "layers", "Layers": i.Layers}}, nil
}

// imageHistory presents an image as one layer.
func (e *Engine) imageHistory(r *http.Request) (any, error) {
	i, err := e.images.Find(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return []imageapi.HistoryResponseItem{{ID: i.ID, Created: i.Created.Unix(), CreatedBy: i.Root, Size: i.Size}}, nil
}

func (e *Engine) tagImage(r *http.Request) (any, error) {
	i, err := e.images.Find(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	i.Names = append(i.Names, r.URL.Query().Get("repo")+":"+r.URL.Query().Get("tag"))
	return nil, e.images.Keep(i)
}

// removeImage removes a name. With the last name it removes the image; the files stay while another image shares
// them.
func (e *Engine) removeImage(r *http.Request) (any, error) {
	ref := r.PathValue("id")
	i, err := e.images.Find(ref)
	if err != nil {
		return nil, err
	}
	deleted := []imageapi.DeleteResponse{{Untagged: ref}}
	if at := slices.Index(i.Names, ref); at >= 0 && len(i.Names)+len(i.Digests) > 1 {
		i.Names = slices.Delete(i.Names, at, at+1)
		return deleted, e.images.Put(i)
	}
	e.mu.Lock()
	for _, b := range e.boxes {
		if b.image.ID == i.ID {
			err = images.Refused(http.StatusConflict, "image "+i.ID+" is being used by container "+b.name)
		}
	}
	e.mu.Unlock()
	if err == nil {
		err = e.images.Remove(i)
	}
	return deleted, err
}

// commit makes an image with more labels from a container that was never started.
func (e *Engine) commit(r *http.Request) (any, error) {
	b, err := e.box(r.URL.Query().Get("container"))
	if err != nil {
		return nil, err
	}
	var changed container.Config
	if err := read(r, &changed); err != nil {
		return nil, err
	}
	if b.state().Status != container.StateCreated {
		return nil, images.Cannot(unmade)
	}
	i, err := e.images.Labelled(b.image, changed.Labels)
	if err != nil {
		return nil, err
	}
	return map[string]string{"Id": i.ID}, nil
}

// createImage pulls or imports an image and reports the progress.
func (e *Engine) createImage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	said := json.NewEncoder(w)
	say := func(status string) {
		_ = said.Encode(map[string]string{"status": status})
		_ = http.NewResponseController(w).Flush()
	}
	q := r.URL.Query()
	var i *images.Image
	var err error
	if q.Get("fromSrc") != "" {
		i, err = e.images.Load(r.Context(), r.Body, q["changes"])
	} else {
		i, err = e.images.Pull(r.Context(), q.Get("fromImage"), q.Get("tag"), r.Header.Get("X-Registry-Auth"), say)
	}
	if err != nil {
		_ = said.Encode(map[string]string{"error": err.Error()})
		return
	}
	say(i.ID)
}
