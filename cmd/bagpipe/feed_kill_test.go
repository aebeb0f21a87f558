package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bagpipe/engine/feed"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Two engines with differing numbers of workers make the feeds, and are killed again and again:
// each post is in each of its feeds once, as a naive model of the history has it; and the feeds
// that are made anew, of nothing, are the same.
func TestFeedsOutliveTheirEngines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("ws/feeds/collections/default.yaml", "schema: 1\nmembers: [ada, bob, eve]\n")
	b.write("ws/feeds/people/bob.yaml", "schema: 1\noptOut: [{type: bagpipe.item.note}]\n")
	b.write("ws/feeds/people/ada.yaml", "schema: 1\naddresses: [ada@example.org]\n")
	b.write("ws/feeds/people/cy.yaml", "schema: 1\nfollows: [ada]\n") // who may not see the collection
	b.write("in/one", "x")
	b.ok("add", filepath.Join(b.top, "in/one"))
	notes := 0
	kills := 0
	start := func(workers int) *process {
		b.env = append(slices.DeleteFunc(b.env, func(v string) bool { return strings.HasPrefix(v, "GOMAXPROCS=") }), fmt.Sprintf("GOMAXPROCS=%d", workers))
		return b.start("run", "--watch")
	}
	for round := range soak(2, 60) {
		one, two := start(1+round%4), start(1+(round+1)%3)
		for range 4 {
			b.ok("note", "one", "-m", fmt.Sprintf("note %d", notes))
			notes++
		}
		<-time.After(time.Duration(round%16) * 150 * time.Millisecond)
		if one.kill() {
			kills++
		}
		if round%3 == 1 && two.kill() {
			kills++
			continue
		}
		two.signal(syscall.SIGTERM)
		two.code(0)
	}
	if kills == 0 {
		t.Fatal("none was killed")
	}
	pairs := func() (all []string) {
		var posts []feed.PostRow
		if err := json.Unmarshal([]byte(b.ok("feed", "posts", "--json")), &posts); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ada", "bob", "cy", "eve"} {
			all = append(all, entriesOf(t, b.ok("feed", "show", "--person", name, "--format", "json", "--limit", "200"), "person/"+name)...)
		}
		all = append(all, entriesOf(t, b.ok("feed", "show", "--collection", "default", "--format", "json", "--limit", "200"), "collection/default")...)
		for _, p := range posts {
			if p.Status != "processed" {
				t.Errorf("post %d is %s: %s", p.Seq, p.Status, p.Reason)
			}
			for _, to := range p.To {
				all = append(all, "post "+p.ID+" "+to)
			}
		}
		slices.Sort(all)
		return all
	}
	got := pairs()
	// By the model each feed shows, alone or with others of a kind, its newest posts: all have the
	// item's arrival and all notes, but bob the arrival alone, and cy nothing.
	for name, want := range map[string]int{"--person ada": 1 + notes, "--person bob": 1, "--person cy": 0, "--person eve": 1 + notes, "--collection default": 1 + notes} {
		var rows []feed.Row
		if err := json.Unmarshal([]byte(b.ok(append(append([]string{"feed", "show"}, strings.Fields(name)...), "--format", "json", "--limit", "200")...)), &rows); err != nil {
			t.Fatal(err)
		}
		shown := 0
		for _, r := range rows {
			shown += 1 + r.More
		}
		if want = min(want, 200); shown != want {
			t.Errorf("%s: %d entries, by the model %d", name, shown, want)
		}
	}
	if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
		t.Errorf("%d of %d are there twice", len(got)-n, len(got))
	}
	// The model: the item's arrival and all notes, each for all members and the collection, the
	// notes but for bob.
	if want := (1 + notes) + (1 + notes) + 1 + (1 + notes); countOf(got, "post ") != want {
		t.Errorf("%d posts in feeds, by the model %d", countOf(got, "post "), want)
	}
	if err := os.RemoveAll(filepath.Join(b.dir, ".bagpipe/feeds")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, pairs()); diff != "" {
		t.Errorf("made anew they differ (-killed +anew):\n%s", diff)
	}
}

// Few commits are read one by one, and many by scans, some of them while they are listed: feeds that were made in both ways are those
// that are made of the whole history at once.
func TestManyCommitsGiveTheFeedsThatFewGive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("ws/feeds/collections/default.yaml", "schema: 1\nmembers: [ada, bob]\n")
	b.ok("status") // takes the file in
	made := 0
	post := func(n int) {
		var in strings.Builder
		for i := range n {
			name := fmt.Sprintf("posts/2026/11/%06d", made)
			file := fmt.Sprintf(`{"by": "x", "collection": "default", "data": {"title": "Map %d"}, "schema": 1, "type": "museum.loan"}`, made)
			message := "post: museum.loan\n\nBagpipe-Post: " + name + "\n"
			fmt.Fprintf(&in, "commit refs/heads/main\ncommitter P <p%d@example.org> now\ndata %d\n%s\n", made%40, len(message), message)
			if i == 0 {
				in.WriteString("from refs/heads/main^0\n")
			}
			fmt.Fprintf(&in, "M 100644 inline %s.json\ndata %d\n%s\n", name, len(file), file)
			made++
		}
		c := exec.Command("git", "-C", b.dir, "fast-import", "--quiet", "--date-format=now")
		c.Stdin = strings.NewReader(in.String())
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("fast-import: %v\n%s", err, out)
		}
	}
	posts := func() (all []feed.PostRow) {
		if err := json.Unmarshal([]byte(b.ok("feed", "posts", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	var few []feed.PostRow
	for _, n := range []int{20, 2600, 20} {
		post(n)
		few = posts()
	}
	if len(few) != made {
		t.Fatalf("%d posts, not %d", len(few), made)
	}
	b.ok("feed", "regenerate")
	if diff := cmp.Diff(few, posts(), cmpopts.IgnoreFields(feed.PostRow{}, "Modified")); diff != "" {
		t.Errorf("made at once they differ (-few +many):\n%s", diff)
	}
}

func countOf(all []string, begin string) (n int) {
	for _, s := range all {
		if strings.HasPrefix(s, begin) {
			n++
		}
	}
	return n
}

// entriesOf lists what a feed shows, with how many others each entry stands for.
func entriesOf(t *testing.T, shown, name string) (all []string) {
	t.Helper()
	var rows []feed.Row
	if err := json.Unmarshal([]byte(shown), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		all = append(all, fmt.Sprintf("entry %s %s %d", r.ID, name, r.More))
	}
	return all
}

// No post is left over: neither those whose posters' sums would be negative as signed numbers, nor those of authors
// without a name and an address, nor those of a line of history that was joined; each is in the collection's feed once,
// and again where all is made anew.
func TestNoPostIsLeftOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("ws/feeds/collections/default.yaml", "schema: 1\nmembers: [ada]\n")
	b.ok("status") // takes the file in
	var in strings.Builder
	made, high := 0, 0
	post := func(branch, author, from, merged string, carried ...int) {
		file := func(n int) {
			data := fmt.Sprintf(`{"by": "x", "collection": "default", "data": {"title": "Map %d"}, "schema": 1, "type": "museum.loan%d"}`, n, n)
			fmt.Fprintf(&in, "M 100644 inline posts/2026/11/%06d.json\ndata %d\n%s\n", n, len(data), data)
		}
		made++
		message := fmt.Sprintf("post: museum.loan\n\nBagpipe-Post: posts/2026/11/%06d\n", made)
		fmt.Fprintf(&in, "commit refs/heads/%s\nmark :%d\ncommitter %s now\ndata %d\n%s\nfrom %s\n", branch, made, author, len(message), message, from)
		if merged != "" {
			fmt.Fprintf(&in, "merge %s\n", merged)
		}
		for _, n := range append(carried, made) {
			file(n)
		}
	}
	before := "refs/heads/main^0"
	for n := range 40 {
		poster := fmt.Sprintf("p%d@example.org", n)
		sum := fnv.New32a()
		sum.Write([]byte(poster))
		if sum.Sum32() > 1<<31 {
			high++
		}
		post("main", "P <"+poster+">", before, "")
		before = fmt.Sprint(":", made)
	}
	post("main", "<>", before, "")
	post("side", "<>", before, "")
	side := made
	post("side", "Eve <eve@example.org>", fmt.Sprint(":", side), "")
	post("main", "Ada Keeper <ada@example.org>", fmt.Sprint(":", side-1), fmt.Sprint(":", side+1), side, side+1)
	c := exec.Command("git", "-C", b.dir, "fast-import", "--quiet", "--date-format=now")
	c.Stdin = strings.NewReader(in.String())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("fast-import: %v\n%s", err, out)
	}
	if high < 10 {
		t.Fatalf("%d posters of sums beyond 2^31", high)
	}
	for range 2 {
		var posts []feed.PostRow
		if err := json.Unmarshal([]byte(b.ok("feed", "posts", "--json")), &posts); err != nil {
			t.Fatal(err)
		}
		types := map[string]int{}
		for _, p := range posts {
			if p.Status != "processed" || p.Part < 0 || p.Part > 63 || !slices.Contains(p.To, "collection/default") {
				t.Errorf("post %s of %q is %s %s, of part %d, to %v", p.Type, p.Poster, p.Status, p.Reason, p.Part, p.To)
			}
			types[p.Type]++
		}
		if len(posts) != made || len(types) != made {
			t.Errorf("%d posts of %d types, not %d", len(posts), len(types), made)
		}
		shown := entriesOf(t, b.ok("feed", "show", "--collection", "default", "--format", "json", "--limit", "200"), "")
		if slices.Sort(shown); len(slices.Compact(shown)) != made {
			t.Errorf("%d entries, not %d", len(shown), made)
		}
		if err := os.RemoveAll(filepath.Join(b.dir, ".bagpipe/feeds")); err != nil {
			t.Fatal(err)
		}
	}
}
