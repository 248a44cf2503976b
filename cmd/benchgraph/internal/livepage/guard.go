package livepage

import (
	"compress/gzip"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"
	"strings"
	"time"
)

// guarded passes on requests that only read, that name this machine as host, and that have the token if one is set.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		patient := &patientWriter{w}
		patient.wait()
		w = patient
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "This server only shows: it answers GET and HEAD.")
		case !s.local(r.Host):
			refuse(w, http.StatusMisdirectedRequest,
				"This server answers under localhost, under its address, and under the name that -addr gives it.")
		case s.config.Token == "":
			next.ServeHTTP(w, r)
		default:
			s.admit(w, r, next)
		}
	})
}

// cookie is the name of the cookie that holds the token. Browsers send cookies to all ports of a host.
func cookie(r *http.Request) string {
	_, port, _ := strings.Cut(r.Host[strings.LastIndexByte(r.Host, ']')+1:], ":")
	return "benchgraph" + port
}

// admit lets a request pass that has the token, as a cookie or, for programs, as a bearer. In an address it is
// exchanged for the cookie, so that it stays in no history and no page.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, next http.Handler) {
	query := r.URL.Query()
	if given := query.Get("token"); given != "" && s.knows(given) {
		query.Del("token")
		http.SetCookie(w, &http.Cookie{
			Name: cookie(r), Value: s.config.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		})
		to := "?" + query.Encode()
		if r.URL.Path == "/" && len(query) == 0 {
			to = "."
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && s.knows(bearer) {
		next.ServeHTTP(w, r)
		return
	}
	if c, err := r.Cookie(cookie(r)); err == nil && s.knows(c.Value) {
		next.ServeHTTP(w, r)
		return
	}
	refuse(w, http.StatusUnauthorized,
		"Open the address that benchgraph serve printed when it started: it holds the token.")
}

// knows compares in a time that does not depend on what is given.
func (s *Server) knows(given string) bool {
	want, have := sha256.Sum256([]byte(s.config.Token)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(want[:], have[:]) == 1
}

// refuse answers with a sentence.
func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	io.WriteString(w, text+"\n")
}

// piece is how many bytes of an answer a client has that time for.
const piece = 64 << 10

// patientWriter gives a client time for each piece of an answer, and gives it up when it takes none.
type patientWriter struct {
	http.ResponseWriter
}

func (w *patientWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		w.wait()
		n, err := w.ResponseWriter.Write(p[:min(len(p), piece)])
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// wait gives the client time from now on. Only a connection that knows no deadlines fails here; that one is waited for.
func (w *patientWriter) wait() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeWithin))
}

func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// packed writes an answer, compressed for those who can unpack it.
func packed(w http.ResponseWriter, r *http.Request, parts ...[]byte) {
	w.Header().Set("Vary", "Accept-Encoding")
	var out io.Writer = w
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		zipped, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		defer zipped.Close()
		out = zipped
	}
	if r.Method == http.MethodHead {
		return
	}
	for _, part := range parts {
		if _, err := out.Write(part); err != nil {
			return // the client is gone
		}
	}
}
