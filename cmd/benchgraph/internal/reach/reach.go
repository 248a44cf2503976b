// Package reach finds out whether the hosts that a project names answer.
package reach

import (
	"context"
	"errors"
	"net/http"
)

// URL says why a URL cannot be reached; nil: it can. Any answer but "not there" counts: a repository's URL alone is no
// page.
func URL(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode >= 500 {
		return errors.New(resp.Status)
	}
	return nil
}
