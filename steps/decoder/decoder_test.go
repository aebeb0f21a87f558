package decoder

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets this test binary be the process that decodes.
func TestMain(m *testing.M) {
	if code, ok := Main(map[string]func() (Work, error){"trial": func() (Work, error) { return trial, nil }}); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// trial does what a file may make a decoder do.
func trial(request json.RawMessage) (any, error) {
	var what string
	if err := json.Unmarshal(request, &what); err != nil {
		return nil, err
	}
	switch what {
	case "broken":
		return nil, errors.New("at byte 7: no tag")
	case "panic":
		panic("index out of range")
	case "memory":
		all := make([]byte, 4<<30)
		for i := 0; i < len(all); i += 4096 {
			all[i] = 1
		}
	case "hang":
		select {}
	case "exit":
		os.Exit(3)
	case "write":
		return nil, os.WriteFile("/dev/shm/never", []byte("x"), 0o600)
	case "missing":
		_, err := os.Open("/nowhere/at/all")
		return nil, err
	}
	return what, nil
}

func TestAsk(t *testing.T) {
	w := New(Options{Work: "trial", Memory: 1 << 30, Time: 2 * time.Second})
	defer w.Close()
	for _, c := range []struct{ ask, says string }{
		{"fine", ""}, {"broken", "at byte 7: no tag"}, {"panic", "its decoder panics: index out of range"},
		{"memory", "more than the 1073741824 bytes of memory"}, {"hang", "longer than 2s"}, {"again", ""},
	} {
		var got string
		err := w.Ask(context.Background(), c.ask, &got)
		var refused *Refused
		switch {
		case c.says == "" && (err != nil || got != c.ask):
			t.Errorf("%s: got %q, %v", c.ask, got, err)
		case c.says != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Reason, c.says)):
			t.Errorf("%s: got %v, want a refusal with %q", c.ask, err, c.says)
		}
	}
}

// Neither a file that cannot be opened nor the machine's trouble is the file's fault.
func TestAskOfTheMachine(t *testing.T) {
	w := New(Options{Work: "trial"})
	defer w.Close()
	var refused *Refused
	for _, what := range []string{"missing", "exit", "write"} {
		var got string
		if err := w.Ask(context.Background(), what, &got); err == nil || what != "exit" && errors.As(err, &refused) {
			t.Errorf("%s: got %q, %v", what, got, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := w.Ask(ctx, "hang", new(string)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}
