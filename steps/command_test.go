package steps

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/layout"
)

// A program's input is one document in the form of Bagpipe's files, whatever its length.
func TestCommandInput(t *testing.T) {
	for what, note := range map[string]string{"short": "a\nb", "longer than a pipe holds": strings.Repeat("0123456789 ", 40_000)} {
		it := newItem(t, "drop", map[string]string{"a": "1"})
		c := it.call()
		manifest, err := layout.EncodeJSON(map[string]any{"item": c.Item, "note": note, "none": map[string]any{}})
		must(t, err)
		execution, err := layout.EncodeJSON(map[string]any{"workflows": map[string]any{"w.1": []int{1, 2}}})
		must(t, err)
		c.Manifest, c.Execution, c.With = manifest, execution, map[string]any{"level": 3}
		_, err = Command([]string{"sh", "-c", "mkdir derived && cat > derived/input"}).Run(t.Context(), c)
		must(t, err)
		got, err := os.ReadFile(filepath.Join(c.Scratch, "derived", "input"))
		must(t, err)
		want, err := layout.EncodeJSON(map[string]any{
			"execution": json.RawMessage(execution), "manifest": json.RawMessage(manifest),
			"item": c.Item, "step": c.Step, "with": c.With, "workflow": c.Workflow,
		})
		must(t, err)
		if string(got) != string(want) {
			t.Errorf("%s: the program read %d bytes, want %d", what, len(got), len(want))
		}
	}
}

func TestAProgramMayLeaveItsInputUnread(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"a": "1"})
	c := it.call()
	c.Manifest = []byte(`{"note": "` + strings.Repeat("x", 1<<20) + `"}`)
	if _, err := Command([]string{"true"}).Run(t.Context(), c); err != nil {
		t.Error(err)
	}
}
