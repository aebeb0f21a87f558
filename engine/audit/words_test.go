package audit_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"bagpipe/engine/audit"
	"bagpipe/layout"
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

// A person's commit bears no trailers of an event that it does not hold.
func TestAPersonsCommitIsWhatItsTrailersSay(t *testing.T) {
	root := worked(t)
	stream := git(t, root, nil, "fast-export", "--reencode=no", "main")
	held := strings.Fields(string(git(t, root, nil, "log", "-1", "--format=%H", "--grep=^hold: held", "main")))[0]
	id := itemOf(string(git(t, root, nil, "log", "-1", "--format=%B", held)))
	dir := layout.ItemDir(layout.ItemID(id))
	manifest := bytes.Replace(git(t, root, nil, "show", "main:"+dir+"/manifest.json"), []byte(`"label": "letter`), []byte(`"label": "ladder`), 1)
	const step = "ITEMBagpipe-Workflow: accession.1\nBagpipe-Step: deposit\nBagpipe-From: in-progress\nBagpipe-To: completed\nBagpipe-Attempt: 9-deadbeef\n"
	for _, c := range []struct {
		name, trailers string
		change         bool
		found          string // "": nothing
	}{
		{"of nothing", "Signed-off-by: Eve <eve@example.org>\n", false, ""},
		{"of a change", "Bagpipe-Agent: Eve\n", true, ""},
		{"of a step, with nothing", step, false, "it tells of a step, and changes no record"},
		{"of a site's step, of no item", "Bagpipe-Step: deposit\nBagpipe-State: completed\nBagpipe-Site: lab\n", false, "it tells of a step, and changes no record"},
		{"of a step, with another change", step, true, `its trailer Bagpipe-Attempt says "9-deadbeef", and it holds no such event`},
		{"of a step of another item", strings.ReplaceAll(step, "ITEM", "Bagpipe-Item: 3fa9c0d2e1b7a49\n"), true, "it changes no record of the item that it names"},
		{"of an intent", "ITEMBagpipe-Intent: hold\n", true, `its trailer Bagpipe-Intent says "hold", and it holds no such event`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			message := "well done\n\n" + strings.ReplaceAll(c.trailers, "ITEM", "Bagpipe-Item: "+id+"\n")
			told := fmt.Appendf(bytes.Clone(stream), "commit refs/heads/main\nauthor Eve <eve@example.org> 1900000000 +0000\ncommitter Eve <eve@example.org> 1900000000 +0000\ndata %d\n%s\n",
				len(message), message)
			if c.change {
				told = fmt.Appendf(told, "M 100644 inline %s/manifest.json\ndata %d\n%s\n", dir, len(manifest), manifest)
			}
			_, found := audited(t, rewritten(t, told))
			switch {
			case c.found == "" && len(found) > 0, c.found != "" && (len(found) != 1 || found[0].Kind != audit.Words || !strings.Contains(found[0].Text, c.found)):
				t.Errorf("found %v, want %q", found, c.found)
			}
		})
	}
}
