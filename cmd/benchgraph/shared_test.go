package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// serveS3 is an S3 server with the bucket team, for stories: s3 DIRECTORY. It writes its address into the file address
// there, a line for each request into the file requests, and answers with 503 while there is a file away.
func serveS3() {
	backend := s3mem.New()
	if err := backend.CreateBucket("team"); err != nil {
		log.Fatal(err)
	}
	dir := os.Args[1]
	requests, err := os.Create(filepath.Join(dir, "requests"))
	if err != nil {
		log.Fatal(err)
	}
	next := gofakes3.New(backend, gofakes3.WithTimeSkewLimit(0)).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(requests, r.Method, r.URL.RequestURI())
		if fileExists(filepath.Join(dir, "away")) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	}))
	fresh := filepath.Join(dir, "address.new")
	err = os.WriteFile(fresh, []byte(server.URL), 0o644)
	if err == nil {
		err = os.Rename(fresh, filepath.Join(dir, "address"))
	}
	if err != nil {
		log.Fatal(err)
	}
	select {}
}
