package audit_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"bagpipe/engine/audit"
)

// A commit by an engine that leaves the execution record alone tells of no transition.
func TestACommitThatMakesNoTransitionTellsOfNone(t *testing.T) {
	root := worked(t)
	stream := git(t, root, nil, "fast-export", "--reencode=no", "main")
	paths := strings.Fields(string(git(t, root, nil, "ls-tree", "-r", "--name-only", "main", "items")))
	var path string
	for _, p := range paths {
		if strings.HasSuffix(p, "/manifest.json") {
			path = p
		}
	}
	id := strings.Split(path, "/")[5]
	manifest := bytes.Replace(git(t, root, nil, "show", "main:"+path), []byte(`"label": "letter`), []byte(`"label": "ladder`), 1)
	for _, c := range []struct {
		name, message string
		found         int
	}{
		{"honest", "set: label ID (default/x)\n\nBagpipe-Item: ID\nBagpipe-Set: label\nBagpipe-Agent: eve\n", 0},
		{"of a step", "deposit: completed ID (default/x)\n\nBagpipe-Item: ID\nBagpipe-From: in-progress\nBagpipe-To: completed\nBagpipe-Attempt: 9-deadbeef\nBagpipe-Agent: eve\n", 4},
		{"by its subject", "deposit: completed ID (default/x)\n\nBagpipe-Item: ID\nBagpipe-Agent: eve\n", 1},
		{"of an intent", "set: label ID (default/x)\n\nBagpipe-Item: ID\nBagpipe-Intent: hold\nBagpipe-Agent: eve\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			message := strings.ReplaceAll(c.message, "ID", id)
			told := fmt.Appendf(bytes.Clone(stream), "commit refs/heads/main\nauthor Bagpipe <bagpipe@vm> 1900000000 +0000\ncommitter Bagpipe <bagpipe@vm> 1900000000 +0000\ndata %d\n%s\nM 100644 inline %s\ndata %d\n%s\n",
				len(message), message, path, len(manifest), manifest)
			_, found := audited(t, rewritten(t, told))
			for _, f := range found {
				if f.Kind != audit.Words || string(f.Item) != id {
					t.Errorf("%+v", f)
				}
			}
			if len(found) != c.found {
				t.Errorf("%d findings: %v", len(found), found)
			}
		})
	}
}
