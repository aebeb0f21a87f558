package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/remote/wire"
)

// greeting is a link that notes what was warm when the worker said hello.
type greeting struct {
	said
	file string
	warm *string
}

func (g greeting) Ask(ctx context.Context, verb string, data []byte) ([]byte, error) {
	warm, _ := os.ReadFile(g.file)
	*g.warm = string(warm)
	return g.said.Ask(ctx, verb, data)
}

// What a robot wants before its first step has run, with its environment and a folder, before the worker says hello;
// a robot that cannot be warmed up ends the worker, named, and the engine hears nothing of it.
func TestWarmUpComesFirst(t *testing.T) {
	for name, c := range map[string]struct{ script, heard, want string }{
		"well": {`echo "loaded $MODEL for $BAGPIPE_STEP" >>"$OUT"; touch "$BAGPIPE_SCRATCH/x"`, "loaded large for ocr\n", ""},
		"bad":  {`echo "no GPU"; exit 3`, "never", "warm robot ocr up: exit status 3: no GPU"},
	} {
		dir := t.TempDir()
		file, heard := filepath.Join(dir, "out"), "never"
		w := &Worker{o: Options{Config: &Config{Folder: dir, Robots: []Robot{{Name: "ocr", Command: []string{"/bin/true"}, WarmUp: []string{"/bin/sh", "-c", c.script}, Env: map[string]string{"MODEL": "large", "OUT": file}}}},
			Key: wire.Key{Name: "w"}, Link: greeting{said{[]byte(`{"v":1,"lease":1}`)}, file, &heard}, Log: slog.New(slog.DiscardHandler), Now: time.Now}}
		if err := os.MkdirAll(w.attempts(), 0o700); err != nil {
			t.Fatal(err)
		}
		err := warming{w}.begin(t.Context(), nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || heard != c.heard {
			t.Errorf("%s: %v; at hello %q, want %q and %q", name, err, heard, c.want, c.heard)
		}
		if left, _ := os.ReadDir(w.attempts()); len(left) != 0 {
			t.Errorf("%s: %v is left", name, left)
		}
	}
	drain := make(chan struct{})
	close(drain)
	w := &Worker{o: Options{Config: &Config{Folder: t.TempDir(), Robots: []Robot{{Name: "ocr", WarmUp: []string{"/bin/sleep", "60"}}}}, Log: slog.New(slog.DiscardHandler), Now: time.Now}}
	if err := os.MkdirAll(w.attempts(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (warming{w}).begin(t.Context(), drain); !errors.Is(err, errDrained) {
		t.Errorf("drained while it warms up: %v", err)
	}
}
