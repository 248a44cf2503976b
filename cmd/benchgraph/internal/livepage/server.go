// Package livepage serves the progress of an apply as a web page: the report, which grows while nodes end, the
// running nodes, the logs of all attempts, and metrics for Prometheus.
//
// It only reads. The apply, in whichever process, does not know of the page and never waits for it: the page follows
// the file of the run log, and a slow client reads the file later.
package livepage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benchgraph/benchgraph/report/page"
)

// Config is the configuration of a Server.
type Config struct {
	Title string
	Runs  string                      // directory of the run logs
	Lock  string                      // file of the lock of applies
	Log   func(attempt string) string // path of an attempt's log
	// states of nodes, in the order in which they are listed
	States []string
	Read   func(context.Context) (*Results, error) // reads the stored results
	Stamp  func() string                           // returns another text if Read may return another result
	Tell   func(error)                             // called with each new error of Read
	Token  string                                  // required of all clients; empty: none
	Host   string                                  // an additional name of the server; empty: none
}

// Limits of the resources that clients can use.
const (
	mostClients = 64               // simultaneous clients of events
	mostOpen    = 256              // connections
	writeWithin = 20 * time.Second // a client that takes no data for this long is disconnected
)

// Server answers the requests of browsers. Its methods may be called from several goroutines.
type Server struct {
	config  Config
	tail    *tail
	keeper  *keeper
	clients atomic.Int64    // number of clients of events
	done    <-chan struct{} // closed when the server ends
}

// Run serves requests on a listener until ctx ends.
func Run(ctx context.Context, l net.Listener, c Config) error {
	keeper, err := newKeeper(c)
	if err != nil {
		return err
	}
	s := &Server{config: c, tail: newTail(c.Runs, c.Lock), keeper: keeper, done: ctx.Done()}
	go s.tail.follow(ctx.Done())
	go s.keeper.keep(ctx)
	s.keeper.look()
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog:  log.New(io.Discard, "", 0), // its messages are only about clients
		ConnState: new(crowd).note,
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return context.Cause(ctx)
}

// handler returns the handler of all requests, behind the checks that each request must pass.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent) // browsers ask, and note a refusal as an error of the page
	})
	mux.HandleFunc("GET /now", s.nowPart)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /log", s.log)
	mux.HandleFunc("GET /log.txt", s.logText)
	mux.HandleFunc("GET /metrics", s.metrics)
	return s.guarded(mux)
}

// page serves the whole page, to browsers and to the page's own script, which replaces the changed parts.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	s.keeper.fresh(r.Context().Done())
	results, _ := s.keeper.now()
	now, err := s.now(results).HTML()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Security-Policy", results.page.Policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	packed(w, r, results.page.Before, now, results.page.After)
}

// nowPart serves the section of the page that changes all the time.
func (s *Server) nowPart(w http.ResponseWriter, r *http.Request) {
	results, _ := s.keeper.now()
	now, err := s.now(results).HTML()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	packed(w, r, now)
}

// now returns the current state of the apply.
func (s *Server) now(results shown) *page.Now {
	at, _ := s.tail.now()
	n := &page.Now{
		Run: at.run, Done: at.count("done"), Failed: at.count("failed"), Samples: at.state.Samples,
		Invalid: at.state.Invalid, Read: results.at, States: s.states(results, at),
	}
	moment := time.Now()
	if at.run != "" {
		n.At = position(at.run, at.offset)
	}
	if results.problem != nil {
		n.Problem = results.problem.Error()
	}
	if at.held {
		since := at.owner.Since.Local().Format(time.DateTime)
		n.Apply = fmt.Sprintf("Process %d of %s on %s applies since %s", at.owner.PID, at.owner.User, at.owner.Host,
			since)
	}
	for _, node := range at.state.Running {
		n.Running = append(n.Running, liveNode(node, moment))
	}
	for i := range at.state.Ended {
		n.Ended = append(n.Ended, liveNode(at.state.Ended[len(at.state.Ended)-1-i], moment))
	}
	if at.held { // after the end, the report below has the samples
		n.Groups = liveGroups(at.state.Groups, results.results)
	}
	return n
}

// states counts the nodes by state: according to the results, updated by events since they were read.
func (s *Server) states(results shown, at standing) (list []page.LiveState) {
	if results.results == nil {
		return nil
	}
	running := map[string]string{}
	for _, n := range at.state.Running {
		if running[n.Address] = "running"; at.state.Waits[n.Address] != "" { // its job is queued
			running[n.Address] = "waiting"
		}
	}
	counts := map[string]int{}
	for address, state := range results.results.Nodes {
		if at.held && running[address] != "" {
			state = running[address]
		} else if at.ended[address] != "" && at.state.Last.After(results.at) {
			state = at.ended[address]
		}
		counts[state]++
	}
	for _, state := range s.config.States {
		if counts[state] > 0 {
			list = append(list, page.LiveState{Name: state, Count: counts[state]})
		}
	}
	return list
}

// Loopback reports whether an address can be reached only from this machine.
func Loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// local reports whether a request's Host header has a name of only this server. It rejects pages of other sites whose
// own name resolves to this server.
func (s *Server) local(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if s.config.Host != "" && name == strings.ToLower(s.config.Host) || name == "localhost" {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && (ip.IsLoopback() || s.config.Token != "")
}
