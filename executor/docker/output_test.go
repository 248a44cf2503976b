package docker_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
)

// before returns the world with somebody between benchgraph and the engine, who passes on what attached programs print.
func (w world) before(t *testing.T, pass func(client *net.TCPConn, engine io.Reader)) world {
	t.Helper()
	socket, ok := strings.CutPrefix(w.engine.Host(), "unix://")
	if !ok {
		t.Skip("the engine has no socket")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve := func(client net.Conn) {
		defer client.Close()
		engine, err := net.Dial("unix", socket)
		if err != nil {
			return
		}
		defer engine.Close()
		go func() { _, _ = io.Copy(engine, client) }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := engine.Read(buffer)
			if bytes.HasPrefix(buffer[:n], []byte("HTTP/1.1 101 ")) {
				for !bytes.Contains(buffer[:n], []byte("\r\n\r\n")) && err == nil { // engines write it in pieces
					var more int
					more, err = engine.Read(buffer[n:])
					n += more
				}
				head, rest, _ := bytes.Cut(buffer[:n], []byte("\r\n\r\n"))
				_, _ = client.Write(append(bytes.Clone(head), "\r\n\r\n"...))
				pass(client.(*net.TCPConn), io.MultiReader(bytes.NewReader(rest), engine))
				return
			}
			if _, failed := client.Write(buffer[:n]); failed != nil || err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go serve(client)
		}
	}()
	return world{newDocker(container.Open(container.Options{State: w.engine.State(),
		Environ: map[string]string{"DOCKER_HOST": "tcp://" + l.Addr().String()}})), w.engine, w.image}
}

// newLoggedWorld is newWorld on an engine that keeps logs, which Podman does not.
func newLoggedWorld(t *testing.T) world {
	t.Helper()
	w := newWorld(t)
	if info, err := w.engine.Info(t.Context()); err != nil || !info.Logs {
		t.Skipf("the engine keeps no log: %v", err)
	}
	return w
}

// A busy engine tells of the end of a program before it passes on what the program printed.
func TestOutputThatComesLate(t *testing.T) {
	w := newWorld(t)
	late := w.before(t, func(client *net.TCPConn, engine io.Reader) {
		buffer := make([]byte, 64<<10)
		for {
			n, err := engine.Read(buffer)
			time.Sleep(time.Second)
			if _, failed := client.Write(buffer[:n]); failed != nil || err != nil {
				return
			}
		}
	})
	if s, out := late.run(t, late.shell("echo printed")); !s.OK() || out != "printed\n" {
		t.Errorf("in a container: %+v, %q", s, out)
	}
	host := late.start(t, late.shell(serve))
	within := executor.Command{Argv: []string{"echo", "printed"}, Container: &executor.Container{Within: host}}
	if s, out := late.run(t, within); !s.OK() || out != "printed\n" {
		t.Errorf("within one: %+v, %q", s, out)
	}
	if _, err := host.Stop(); err != nil {
		t.Error(err)
	}
}

// Docker closes the streams of a container that has ended, whether or not all has reached its clients. The end of the
// output is where benchmarks print their numbers.
func TestTheEngineClosesTheStreamsEarly(t *testing.T) {
	w := newLoggedWorld(t)
	lines := "i=0; while [ $i -lt 2000 ]; do echo line $i of 2000; i=$((i+1)); done; "
	for _, tt := range []struct {
		name, script string
		passed       int64 // bytes, with 8 more before each piece
		lost         bool
	}{
		{"nothing comes", "echo one; echo two >&2; printf three", 0, false},
		{"half of a piece", "echo one", 10, false},
		{"no newline at the end", "printf one; sleep 0.3; printf two", 11, false},
		{"newlines at the cut", `printf 'one\n\n'; sleep 0.3; printf '\n\ntwo\n'`, 13, false},
		{"the same again and again", `printf 'a\n'; sleep 0.3; printf 'a\na\n'`, 10, false},
		{"errors last", "echo one; sleep 0.3; echo two >&2", 12, false},
		{"stdout is closed", "echo one; exec >&-; sleep 0.3; echo two >&2", 12, false},
		{"many lines", lines, 5000, false},
		{"bytes that are no text", `printf '\377\0\001'; sleep 0.3; printf '\0\0\200'`, 11, false},
		{"a failure", "echo one; sleep 0.3; echo why; exit 3", 12, false},
		{"the connection breaks", "echo one; sleep 0.3; echo two", 12, false},
		{"all comes", "echo one", 1 << 40, false},
		{"much, and all comes", "yes much | head -c 3000000; echo end", 1 << 40, false},
		{"one long line, and all comes", "yes much | head -c 3000000 | tr -d '\\n'; echo end", 1 << 40, false},
		{"more than is kept", "yes much | head -c 3000000; echo end", 100000, true},
		{"all but the last", "yes much | head -c 3000000; sleep 0.3; echo end", 3000000, true},
		{"much, and nothing comes", "yes much | head -c 3000000", 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			outputs := func(w world) (stdout, stderr bytes.Buffer, s executor.Status, err error) {
				cmd := w.shell(tt.script)
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				s, err = executor.Run(t.Context(), w, cmd)
				return stdout, stderr, s, err
			}
			stdout, stderr, s, err := outputs(w.before(t, func(client *net.TCPConn, engine io.Reader) {
				_, _ = io.CopyN(client, engine, tt.passed)
				if strings.HasPrefix(tt.name, "the connection breaks") {
					_ = client.SetLinger(0)
				}
				client.Close()
				_, _ = io.Copy(io.Discard, engine)
			}))
			if tt.lost {
				if container.Class(err) != failure.Transient || !strings.Contains(err.Error(), "lost the end") {
					t.Errorf("%+v, %v", s, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			whole, errors, want, err := outputs(w)
			if s.Code != want.Code || err != nil {
				t.Errorf("%+v, %v", s, err)
			}
			if !bytes.Equal(stdout.Bytes(), whole.Bytes()) || !bytes.Equal(stderr.Bytes(), errors.Bytes()) {
				t.Errorf("%d bytes of %d and %q, which should be %q", stdout.Len(), whole.Len(), &stderr, &errors)
			}
		})
	}
}

// A secret that arrives in pieces is masked like one that arrives whole.
func TestASecretAtTheCut(t *testing.T) {
	w := newLoggedWorld(t)
	cut := w.before(t, func(client *net.TCPConn, engine io.Reader) {
		_, _ = io.CopyN(client, engine, 8+5)
		client.Close()
		_, _ = io.Copy(io.Discard, engine)
	})
	cmd := cut.shell("printf hf_se; sleep 0.3; echo cret")
	cmd.Secrets = []string{"hf_secret"}
	if _, out := cut.run(t, cmd); out != "***\n" {
		t.Errorf("%q", out)
	}
}

// The log of a container has a bound: a benchmark may print gigabytes.
func TestTheEngineKeepsTheEndOfTheOutput(t *testing.T) {
	w := newLoggedWorld(t)
	p := w.start(t, w.shell("yes much | head -c 5000000; "+serve))
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		log, err := w.engine.Log(t.Context(), p.Container())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasSuffix(log.Stdout.Bytes(), []byte("much\nup\n")) {
			if time.Since(begun) > time.Minute {
				t.Fatalf("%d bytes", log.Stdout.Len())
			}
			continue
		}
		if log.Stdout.Len() > 500_000 {
			t.Errorf("%d bytes", log.Stdout.Len())
		}
		return
	}
}

// Many short containers at once print their numbers last.
func TestTheEndOfManyShortContainers(t *testing.T) {
	w := newWorld(t)
	want := fmt.Sprintf("%s\nend\n", strings.Repeat("0123456789abcde\n", 6250))
	many := make(chan error)
	for range 24 {
		go func() {
			cmd := w.shell("yes 0123456789abcde | head -n 6250; echo; echo end")
			var out bytes.Buffer
			cmd.Stdout = &out
			s, err := executor.Run(t.Context(), w, cmd)
			if err == nil && (!s.OK() || out.String() != want) {
				err = fmt.Errorf("%+v, %d bytes that end with %q", s, out.Len(), out.Bytes()[max(0, out.Len()-20):])
			}
			many <- err
		}()
	}
	for range 24 {
		if err := <-many; err != nil {
			t.Error(err)
		}
	}
}
