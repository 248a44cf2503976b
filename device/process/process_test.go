package process

import (
	"os"
	"strings"
	"testing"
)

func TestAProcessIsNamedAsFarAsItIsSeen(t *testing.T) {
	own := Process{PID: os.Getpid(), Used: 1 << 30}
	own.Identify()
	if own.User == "" || own.Name == "" {
		t.Errorf("%+v", own)
	}
	if text := own.String(); !strings.Contains(text, "("+own.Name+" of "+own.User+") with 1 GiB") {
		t.Error(text)
	}
	gone := Process{PID: 2147483647}
	if gone.Identify(); gone.String() != "process 2147483647" {
		t.Error(gone)
	}
}
