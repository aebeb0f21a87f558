package feed_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/feed"
	"bagpipe/engine/gitstore"
	"bagpipe/steps"
)

// Of many posts made at once the newest have no template: as where they come one by one, the older ones stay
// in the feed.
func TestPostsWithoutATemplateDriveNoOthersOut(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(t.TempDir(), "ws")
	o := engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(), Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()},
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}}
	must(engine.Init(t.Context(), root, o))
	var in bytes.Buffer
	when := time.Now().Unix()
	commit := func(message string) {
		when++
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata %d\n%s\n", when-4000, len(message), message)
	}
	file := func(name, text string) { fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text) }
	commit("templates")
	in.WriteString("from refs/heads/main^0\n")
	file("feeds/collections/maps.yaml", "schema: 1\nmembers: [ada@example.org]\n")
	for _, format := range []string{"text", "html", "atom"} {
		file("feeds/templates/museum/loan."+format+".tmpl", "a loan")
		file("feeds/templates/bagpipe/generic."+format+".tmpl", "{{broken")
	}
	const each = 300
	for i, kind := range []string{"museum.loan", "museum.loss"} {
		for n := range each {
			name := fmt.Sprintf("posts/2026/11/%d-%04d", i, n)
			commit("post: " + kind + "\n\nBagpipe-Post: " + name + "\n")
			file(name+".json", fmt.Sprintf(`{"schema": 1, "type": %q, "collection": "maps", "data": {}, "by": "x"}`, kind))
		}
	}
	git := exec.CommandContext(t.Context(), "git", "-C", root, "fast-import", "--quiet")
	git.Stdin = &in
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	e, err := engine.Open(t.Context(), root, o)
	must(err)
	defer func() { must(e.Close()) }()
	f := feed.New(e.Ledger)
	for _, name := range []string{"collection/maps", "person/ada@example.org"} {
		must(f.Regenerate(t.Context()))
		rows, err := f.Show(t.Context(), name, 0)
		must(err)
		shown := 0
		for _, r := range rows {
			if shown += 1 + r.More; r.Type != "museum.loan" {
				t.Errorf("%s has %s", name, r.Type)
			}
		}
		if shown != 200 {
			t.Errorf("%s shows %d loans, want the newest 200", name, shown)
		}
	}
	posts, err := f.Posts(t.Context())
	must(err)
	failed := 0
	for _, p := range posts {
		if p.Status == "error" {
			failed++
		}
	}
	if failed != each {
		t.Errorf("%d posts without a template are listed, want %d", failed, each)
	}
}
