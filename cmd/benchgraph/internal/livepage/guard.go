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

// guarded passes on requests that only read, name this machine as host, and have the token if one is set.
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

// cookie returns the name of the cookie with the token. It contains the port, since browsers send cookies to all
// ports of a host.
func cookie(r *http.Request) string {
	_, port, _ := strings.Cut(r.Host[strings.LastIndexByte(r.Host, ']')+1:], ":")
	return "benchgraph" + port
}

// admit passes on requests with the token, in a cookie or, for programs, as a bearer token. A token in the address is
// exchanged for the cookie, so that histories and pages do not contain it.
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

// knows compares the token in constant time.
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

// piece is the number of bytes for which a client has writeWithin.
const piece = 64 << 10

// patientWriter gives a client a time limit for each piece of an answer.
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

// wait restarts the time limit. It fails only for connections without deadlines, which then have no limit.
func (w *patientWriter) wait() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeWithin))
}

func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// packed writes an answer, compressed if the client accepts that.
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
