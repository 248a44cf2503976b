package cli

import (
	"errors"
	"time"
)

// Deadline is a flag with the time at which a command stops. The zero Deadline never comes.
type Deadline struct{ Time time.Time }

func (d *Deadline) String() string {
	if d.Time.IsZero() {
		return ""
	}
	return d.Time.Format(time.RFC3339)
}

// Set accepts a time of the day, a time, or a duration from now.
func (d *Deadline) Set(text string) error {
	now := time.Now()
	if after, err := time.ParseDuration(text); err == nil {
		if after <= 0 {
			return errors.New("a duration is positive")
		}
		d.Time = now.Add(after)
		return nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if !at.After(now) {
			return errors.New("that time has passed")
		}
		d.Time = at
		return nil
	}
	at, err := time.Parse("15:04", text)
	if err != nil {
		return errors.New("write a time of the day (18:30), a time (2026-01-02T18:30:00Z) or a duration (2h30m)")
	}
	d.Time = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), 0, 0, now.Location())
	if !d.Time.After(now) {
		d.Time = d.Time.AddDate(0, 0, 1)
	}
	return nil
}
