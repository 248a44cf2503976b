package printable

import "testing"

func TestPasswordsAreHidden(t *testing.T) {
	for text, want := range map[string]string{
		`url = "https://me:s3cr3t@example.org/a" # é`: `url = "https://me:xxxxxx@example.org/a" # é`,
		`"https://:tok@a/b", "ssh://u:p:q@h:22/x"`:    `"https://:xxx@a/b", "ssh://u:xxx@h:22/x"`,
		`"https://me:${var.token}@example.org"`:       `"https://me:${var.token}@example.org"`,
		`http://127.0.0.1:8000/v1 mail@example.org`:   `http://127.0.0.1:8000/v1 mail@example.org`,
		`https://example.org:443/path:with@sign https://user@host`: `https://example.org:443/path:with@sign ` +
			`https://user@host`,
		`git+https://u:p$ss$1@h`:      `git+https://u:xxxxxx@h`,
		`nothing of that kind: a:b@c`: `nothing of that kind: a:b@c`,
	} {
		if got := string(WithoutPasswords([]byte(text))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
