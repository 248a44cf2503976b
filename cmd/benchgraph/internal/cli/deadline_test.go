package cli

import (
	"testing"
	"time"
)

func TestDeadlinesLieAhead(t *testing.T) {
	for _, text := range []string{"2h30m", "00:00", "23:59", time.Now().Add(time.Hour).Format(time.RFC3339)} {
		var d Deadline
		if err := d.Set(text); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if left := time.Until(d.Time); left <= -time.Minute || left > 25*time.Hour {
			t.Errorf("%s is %s, in %s", text, d.String(), left)
		}
	}
	for _, text := range []string{"", "soon", "-1h", "0s", "25:00", "2020-01-02T18:30:00Z"} {
		var d Deadline
		if err := d.Set(text); err == nil {
			t.Errorf("%q was taken as %s", text, d.String())
		}
	}
	if never := (&Deadline{}).String(); never != "" {
		t.Errorf("the zero deadline is %q", never)
	}
}
