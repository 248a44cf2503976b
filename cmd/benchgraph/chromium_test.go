//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

// chromium is a browser that a test drives through DevTools messages on two pipes.
type chromium struct {
	t   *testing.T
	to  io.Writer
	out *bufio.Reader

	mu      sync.Mutex
	serial  int
	answers map[int]chan json.RawMessage
	session string          // of the newest page
	said    []string        // on the console, by any page
	asked   map[string]bool // hosts that any page asked for something
}

// newChromium starts a browser. Without a browser on this machine, the test is skipped, and fails in CI.
func newChromium(t *testing.T) *chromium {
	t.Helper()
	path := needtest.Chromium(t)
	commands, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
		"--no-first-run", "--remote-debugging-pipe",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "about:blank")
	cmd.ExtraFiles = []*os.File{commands, answers}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	commands.Close()
	answers.Close()
	c := &chromium{t: t, to: to, out: bufio.NewReader(from), answers: map[int]chan json.RawMessage{},
		asked: map[string]bool{}}
	read := make(chan struct{})
	go c.read(read)
	t.Cleanup(func() {
		to.Close()
		cancel()
		_ = cmd.Wait() // it was killed
		<-read
		from.Close()
	})
	return c
}

// read takes in all messages until the browser is gone.
func (c *chromium) read(done chan<- struct{}) {
	defer close(done)
	for {
		text, err := c.out.ReadBytes(0)
		if err != nil {
			c.mu.Lock()
			for _, answer := range c.answers {
				close(answer)
			}
			c.answers = nil
			c.mu.Unlock()
			return
		}
		var m struct {
			ID     int
			Method string
			Result json.RawMessage
			Error  json.RawMessage
			Params struct {
				Entry            struct{ Text, URL string }
				Request          struct{ URL string }
				ExceptionDetails json.RawMessage
			}
		}
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m) != nil {
			continue
		}
		c.mu.Lock()
		switch {
		case m.Method == "Log.entryAdded":
			c.said = append(c.said, m.Params.Entry.Text+" "+m.Params.Entry.URL)
		case m.Method == "Runtime.consoleAPICalled", m.Method == "Runtime.exceptionThrown":
			c.said = append(c.said, string(text))
		case m.Method == "Network.requestWillBeSent":
			if u, err := url.Parse(m.Params.Request.URL); err == nil {
				c.asked[u.Host] = true
			}
		case c.answers[m.ID] != nil:
			if m.Error != nil {
				m.Result = json.RawMessage(`{"error":` + string(m.Error) + `}`)
			}
			c.answers[m.ID] <- m.Result
			delete(c.answers, m.ID)
		}
		c.mu.Unlock()
	}
}

// call sends a request to the browser and waits for the answer.
func (c *chromium) call(session, method string, params any) json.RawMessage {
	c.t.Helper()
	answer := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.serial++
	if c.answers == nil {
		c.mu.Unlock()
		c.t.Fatalf("%s: the browser has ended", method)
	}
	c.answers[c.serial] = answer
	text, err := json.Marshal(map[string]any{"id": c.serial, "method": method, "params": params, "sessionId": session})
	if err == nil {
		if session == "" {
			text = bytes.Replace(text, []byte(`,"sessionId":""`), nil, 1)
		}
		_, err = c.to.Write(append(text, 0))
	}
	c.mu.Unlock()
	if err != nil {
		c.t.Fatal(err)
	}
	result, ok := <-answer
	if !ok || strings.HasPrefix(string(result), `{"error":`) {
		c.t.Fatalf("%s: %s", method, result)
	}
	return result
}

// open opens an address in a new page. Later calls are about that page.
func (c *chromium) open(address string) {
	c.t.Helper()
	var page struct{ TargetID, SessionID string }
	must := func(text json.RawMessage) {
		if err := json.Unmarshal(text, &page); err != nil {
			c.t.Fatal(err)
		}
	}
	must(c.call("", "Target.createTarget", map[string]any{"url": "about:blank"}))
	must(c.call("", "Target.attachToTarget", map[string]any{"targetId": page.TargetID, "flatten": true}))
	c.session = page.SessionID
	for _, domain := range []string{"Log", "Runtime", "Network", "Page"} {
		c.call(c.session, domain+".enable", struct{}{})
	}
	c.call(c.session, "Page.navigate", map[string]any{"url": address})
	c.await(fmt.Sprintf("location.href === %q && document.readyState === 'complete'", address))
}

// eval returns the value of an expression in the page, as a text.
func (c *chromium) eval(expression string) string {
	c.t.Helper()
	var v struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	text := c.call(c.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true,
		"returnByValue": true})
	if err := json.Unmarshal(text, &v); err != nil || v.ExceptionDetails != nil {
		c.t.Fatalf("%s: %v %s", expression, err, v.ExceptionDetails)
	}
	return fmt.Sprint(v.Result.Value)
}

// await waits until an expression is true in the page.
func (c *chromium) await(condition string) {
	c.t.Helper()
	for end := time.Now().Add(patience - 10*time.Second); c.eval("Boolean("+condition+")") != "true"; {
		if time.Now().After(end) {
			c.t.Fatalf("%s does not come true. The page is:\n%s", condition, c.eval("document.body.innerText"))
		}
		c.eval("new Promise((done) => { setTimeout(done, 50); })")
	}
}
