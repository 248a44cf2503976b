//go:build linux

package apptainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/apptainer/images"
)

// box finds a container by its ID or name.
func (e *Engine) box(name string) (*box, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.boxes[name]; b != nil {
		return b, nil
	}
	return nil, images.NotFound("No such container: %s", name)
}

func (e *Engine) create(r *http.Request) (any, error) {
	var request container.CreateRequest
	if err := read(r, &request); err != nil {
		return nil, err
	}
	if request.Config == nil || request.HostConfig == nil {
		return nil, images.Refused(http.StatusBadRequest, "a container has no configuration")
	}
	img, err := e.images.Find(request.Image)
	if err != nil {
		return nil, err
	}
	b := newBox(e, r.URL.Query().Get("name"))
	b.image, b.root = img, filepath.Join(e.options.Dir, img.Root)
	b.config, b.host = *request.Config, *request.HostConfig
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.boxes[b.name] != nil {
		return nil, images.Refused(http.StatusConflict, "there is a container "+b.name)
	}
	e.boxes[b.id], e.boxes[b.name] = b, b
	return container.CreateResponse{ID: b.id, Warnings: []string{}}, nil
}

func (e *Engine) start(r *http.Request) (any, error) {
	b, err := e.box(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return nil, b.launch()
}

func (e *Engine) inspect(r *http.Request) (any, error) {
	b, err := e.box(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{ID: b.id, Name: "/" + b.name,
		Image: b.image.ID, State: b.state(), HostConfig: &b.host, Created: b.created.Format(time.RFC3339Nano)},
		Config: &b.config, NetworkSettings: &container.NetworkSettings{}}, nil
}

func (e *Engine) list(r *http.Request) (any, error) {
	chosen, err := filters.FromJSON(r.URL.Query().Get("filters"))
	if err != nil {
		return nil, images.Refused(http.StatusBadRequest, err.Error())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	all := []container.Summary{}
	for name, b := range e.boxes {
		if name == b.id && chosen.MatchKVList("label", b.config.Labels) {
			all = append(all, container.Summary{ID: b.id, Names: []string{"/" + b.name}, ImageID: b.image.ID,
				Labels: b.config.Labels, State: b.state().Status})
		}
	}
	return all, nil
}

func (e *Engine) signal(r *http.Request) (any, error) {
	b, err := e.box(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	sig := unix.SignalNum(r.URL.Query().Get("signal"))
	if sig == 0 {
		sig = syscall.SIGKILL
	}
	return nil, b.send(sig)
}

func (e *Engine) remove(r *http.Request) (any, error) {
	b, err := e.box(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	there := e.boxes[b.id] != nil
	delete(e.boxes, b.id)
	delete(e.boxes, b.name)
	var programs []*box
	for id, p := range e.execs {
		if p.within == b {
			programs = append(programs, p)
			delete(e.execs, id)
		}
	}
	e.mu.Unlock()
	if !there {
		return nil, images.NotFound("No such container: %s", b.name)
	}
	b.kill()
	b.output.close()
	for _, p := range programs { // the programs have ended with the container
		err = errors.Join(err, p.clear())
	}
	return nil, errors.Join(err, b.clear())
}

// wait sends the header at once, as a sign that it waits, and the program's status when the program ends.
func (e *Engine) wait(w http.ResponseWriter, r *http.Request) {
	b, err := e.box(r.PathValue("id"))
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	select {
	case <-b.done:
	case <-r.Context().Done():
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	end := container.WaitResponse{StatusCode: int64(code(b.status))}
	if b.err != nil {
		end.Error = &container.WaitExitError{Message: b.err.Error()}
	}
	_ = json.NewEncoder(w).Encode(end)
}

func (e *Engine) attach(w http.ResponseWriter, r *http.Request) {
	b, err := e.box(r.PathValue("id"))
	if err == nil {
		err = b.hijack(w, r, r.URL.Query().Get("stdin") == "1")
	}
	if err != nil {
		refuse(w, err)
	}
}

// hijack takes over the connection of a request for the program's streams.
func (b *box) hijack(w http.ResponseWriter, r *http.Request, stdin bool) error {
	if _, err := io.Copy(io.Discard, r.Body); err != nil { // the rest of the body would become the program's input
		return err
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\n"+
		"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	b.output.mu.Lock()
	defer b.output.mu.Unlock()
	b.output.conn = conn
	if stdin {
		b.output.stdin = buffered.Reader
	}
	return nil
}

// createExec records a program that startExec runs in a container.
func (e *Engine) createExec(r *http.Request) (any, error) {
	in, err := e.box(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var o container.ExecOptions
	if err := read(r, &o); err != nil {
		return nil, err
	}
	b := newBox(e, in.name)
	b.within, b.image, b.root = in, in.image, in.root
	b.config = container.Config{Cmd: o.Cmd, Env: o.Env, WorkingDir: o.WorkingDir, AttachStdin: o.AttachStdin}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.execs[b.id] = b
	return map[string]string{"Id": b.id}, nil
}

func (e *Engine) exec(id string) (*box, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.execs[id]; b != nil {
		return b, nil
	}
	return nil, images.NotFound("No such exec instance: %s", id)
}

func (e *Engine) startExec(w http.ResponseWriter, r *http.Request) {
	b, err := e.exec(r.PathValue("id"))
	var pid int
	if err == nil {
		pid, err = b.within.inner()
	}
	if err == nil {
		err = b.hijack(w, r, b.config.AttachStdin)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	if err := b.enter(pid); err != nil {
		fmt.Fprintf(stream{&b.output, 2}, "OCI runtime exec failed: %v\n", err)
		b.mu.Lock()
		b.status.Code = 126
		b.mu.Unlock()
		b.output.close()
		close(b.done)
	}
}

func (e *Engine) inspectExec(r *http.Request) (any, error) {
	b, err := e.exec(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	s := b.state()
	i := container.ExecInspect{ExecID: b.id, ContainerID: b.within.id, ExitCode: s.ExitCode,
		Running: s.Status != container.StateExited}
	if outer, err := b.outer(); err == nil {
		for _, pid := range children(outer) {
			i.Pid = pid
		}
	}
	return i, nil
}
