package feed

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
)

func TestTemplatesInLine(t *testing.T) {
	for kind, want := range map[string]string{
		"bagpipe.accession.failed": "bagpipe/accession/failed bagpipe/failed bagpipe/accession/generic bagpipe/generic",
		"org.museum.folder.create": "org/museum/folder/create org/museum/create org/create org/museum/folder/generic org/museum/generic org/generic bagpipe/generic",
	} {
		if diff := cmp.Diff(want, strings.Join(inLine(kind), " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// some makes posts by some people, on part numbers that differ.
func some(n int) (posts []*Post) {
	for i := range n {
		posts = append(posts, &Post{Seq: i + 1, Poster: fmt.Sprint("p", i%5), Part: i % 5, Type: "bagpipe.accession.failed", Date: time.Unix(int64(i)*7200, 0).UTC(),
			To: []string{"person/ada", fmt.Sprint("collection/c", i%3)}, Data: map[string]any{"label": "x\x1b[31m<script>", "step": "ocr", "to": "failed"}})
	}
	return posts
}

func testFeeds(dir string) *Feeds {
	n := 0
	return &Feeds{dir: dir, key: func() (string, error) {
		n++
		_, err := os.Stat(filepath.Join(dir, fmt.Sprint("k", n)))
		for err == nil {
			n++
			_, err = os.Stat(filepath.Join(dir, fmt.Sprint("k", n)))
		}
		return fmt.Sprint("k", n), nil
	}}
}

// cleanedAt is clean at a moment.
func cleanedAt(f *Feeds, now time.Time, listed time.Duration) error {
	_, err := f.cleanAt(now, listed, f.shelf.waits)
	return err
}

// put brings posts to the list.
func put(t *testing.T, f *Feeds, posts ...*Post) {
	t.Helper()
	err := f.locked(func() error {
		l := listing{through: "c", next: f.shelf.next}
		for _, p := range posts {
			body, err := p.body()
			if err != nil {
				return err
			}
			data := appendSummed(nil, body)
			at, err := appendTo(f.shelf.bodies(), data)
			if err != nil {
				return err
			}
			l.records = append(l.records, record{seq: p.Seq, date: p.Date.Unix(), part: p.Part, audience: f.shelf.audience(p.To), body: span{at, len(data)}})
			l.next = p.Seq + 1
		}
		return f.shelf.list(f.turn, l)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// enter makes the entries of the posts that wait, most in a frame.
func enter(t *testing.T, f *Feeds, r *renderer, most int, now time.Time) {
	t.Helper()
	err := f.locked(func() error {
		s := f.shelf
		bodies := singles{path: s.bodies()}
		defer bodies.close()
		for n := range s.parts {
			var open []int
			for i := range s.records {
				if s.records[i].part == n && s.waits(&s.records[i]) {
					open = append(open, i)
				}
			}
			for some := range slices.Chunk(open, most) {
				if err := s.make(n, some, f.turn, r, func() time.Time { return now }, &bodies); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// showFeed gives all entries of a feed, as the files have them.
func showFeed(t *testing.T, f *Feeds, feed string) (rows []Row) {
	t.Helper()
	err := f.locked(func() (err error) {
		from := newRows(f.shelf, 0)
		defer from.close()
		rows, err = from.of(feed, time.Unix(0, 0), 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func seqsOf(rows []Row) (seqs []int) {
	for _, r := range rows {
		seqs = append(seqs, r.Seq)
	}
	return seqs
}

func testRenderer(t *testing.T) *renderer {
	return &renderer{parsed: map[string]template{}, lines: map[string][]string{}, warn: func(name string, err error) { t.Errorf("%s: %v", name, err) },
		read: func(name string) ([]byte, error) { return os.ReadFile("../../templates/feeds/" + name) }}
}

// TestAFrameThatWasCutIsMadeAgain cuts a part's file in its last frame, as a crash does: the
// next cycle has each post once. A bit that flips in any file is found.
func TestAFrameThatWasCutIsMadeAgain(t *testing.T) {
	f := testFeeds(t.TempDir())
	posts := some(4)
	for _, p := range posts {
		p.Part = 0
	}
	put(t, f, posts...)
	enter(t, f, testRenderer(t), 1, time.Unix(1, 0))
	want := showFeed(t, f, "person/ada")
	if diff := cmp.Diff([]int{4, 3, 2, 1}, seqsOf(want)); diff != "" {
		t.Fatal(diff)
	}
	path := f.shelf.parts[0].path
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := len(whole) * 3 / 4
	for cut := last; cut < len(whole); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		again := testFeeds(f.dir)
		if n := len(showFeed(t, again, "person/ada")); n != 3 {
			t.Fatalf("cut at %d of %d: %d entries are left of 4", cut, len(whole), n)
		}
		enter(t, again, testRenderer(t), 1, time.Unix(1, 0))
		if diff := cmp.Diff(want, showFeed(t, testFeeds(f.dir), "person/ada")); diff != "" {
			t.Fatalf("cut at %d: made again it differs (-want +got):\n%s", cut, diff)
		}
	}
	files, err := filepath.Glob(filepath.Join(f.shelf.dir, "*"))
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damaged := slices.Clone(whole)
		damaged[len(damaged)-1] ^= 1
		if err := os.WriteFile(path, damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		again, found := testFeeds(f.dir), error(nil)
		s := newShelf(f.shelf.dir)
		if found = s.load(); found == nil {
			again.shelf = s
			from := newRows(s, 0)
			_, found = from.of("person/ada", time.Unix(0, 0), 0)
			from.close()
		}
		if n := len(s.records); found == nil && n == 4 || found != nil && !errors.Is(found, errDamaged) {
			t.Errorf("%s: a flipped bit: %v", filepath.Base(path), found)
		}
		if err := os.WriteFile(path, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Files of another version, and those of a part that is ahead of the list as after a crash of
// the machine, are built anew.
func TestFilesThatCannotBeAreBuiltAnew(t *testing.T) {
	f := testFeeds(t.TempDir())
	put(t, f, some(4)...)
	enter(t, f, testRenderer(t), 4, time.Unix(1, 0))
	if err := os.WriteFile(filepath.Join(f.dir, "part-00"), nil, 0o666); err != nil { // of version 1
		t.Fatal(err)
	}
	if err := os.Truncate(f.shelf.posts.path, 0); err != nil {
		t.Fatal(err)
	}
	again := testFeeds(f.dir)
	if rows := showFeed(t, again, "person/ada"); len(rows) != 0 || again.shelf.through != "" || again.shelf.dir == f.shelf.dir {
		t.Errorf("%+v", rows)
	}
	put(t, again, some(2)...)
	if err := os.WriteFile(again.file("now"), []byte("1 "+filepath.Base(again.shelf.dir)), 0o666); err != nil {
		t.Fatal(err)
	}
	other := testFeeds(f.dir)
	if rows := showFeed(t, other, "person/ada"); len(rows) != 0 || other.shelf.through != "" {
		t.Errorf("%+v", rows)
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil || len(entries) != 3 { // now, turn, and the folder
		t.Errorf("%v, %v", entries, err)
	}
}

func TestMarkupOfPeopleIsEscapedAndControlCharactersAreShown(t *testing.T) {
	r := testRenderer(t)
	text, err := r.render(some(1)[0].Type, "text", valuesOf(some(1)[0]))
	if err != nil || strings.ContainsRune(text, '\x1b') {
		t.Errorf("%q, %v", text, err)
	}
	html, err := r.render(some(1)[0].Type, "html", valuesOf(some(1)[0]))
	if err != nil || strings.Contains(html, "<script>") {
		t.Errorf("%q, %v", html, err)
	}
	rows := []Row{{Post: *some(1)[0], Summary: map[string]string{"text": text, "atom": html}}}
	var out strings.Builder
	if err := WriteAtom(&out, "person/ada", rows, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	var back atomFeed
	if err := xml.Unmarshal([]byte(out.String()), &back); err != nil || len(back.Entries) != 1 || back.Entries[0].Content.Text != html {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestManyOfAKindAreShownAsOne(t *testing.T) {
	var rows []Row
	for _, p := range some(20) {
		p.Date, p.Poster, p.Collection = time.Unix(int64(-p.Seq)*60, 0), "ada", fmt.Sprint("c", p.Seq%2)
		if p.Seq > 12 {
			p.Type = fmt.Sprint("x.", p.Seq)
		}
		rows = append(rows, Row{Post: *p})
	}
	got := gathered(rows) // 6 of c0, 6 of c1, 8 others
	if len(got) != 10 || got[0].More != 5 || got[1].More != 5 || got[2].More != 0 {
		t.Errorf("%d rows: %+v", len(got), got[:2])
	}
}

func TestOldEntriesAndThoseBeyondTheMostAreDropped(t *testing.T) {
	f := testFeeds(t.TempDir())
	now := time.Unix(1_800_000_000, 0).UTC()
	posts := some(mostEach*slack + 100)
	for n, p := range posts {
		p.To = []string{"person/ada"}
		if p.Date = now.Add(-time.Duration(len(posts)-n) * time.Minute); n%50 == 0 {
			p.To = []string{"collection/rare"} // few, so they stay
		}
		if n < 10 {
			p.Date = now.Add(-keep - time.Hour)
		}
	}
	put(t, f, posts...)
	enter(t, f, testRenderer(t), 7, now)
	waiting := &Post{Seq: len(posts) + 1, Date: now.Add(-keep - time.Hour), To: []string{"person/ada"}} // it has no entry yet
	put(t, f, waiting)
	before := showFeed(t, f, "person/ada")[:mostEach]
	if err := f.locked(func() error { return cleanedAt(f, now, keep) }); err != nil {
		t.Fatal(err)
	}
	again := testFeeds(f.dir)
	rows := showFeed(t, again, "person/ada")
	if diff := cmp.Diff(before, rows); diff != "" {
		t.Errorf("the newest changed (-want +got):\n%s", diff)
	}
	for _, s := range []*shelf{f.shelf, again.shelf} {
		if sizes := s.sizes(); sizes["person/ada"] != mostEach || sizes["collection/rare"] != 9 || len(s.records) != mostEach+9+1 {
			t.Errorf("%v, %d posts", sizes, len(s.records))
		}
		if last := s.records[len(s.records)-1]; last.seq != waiting.Seq || !s.waits(&last) {
			t.Error("a post that waits for its entry was dropped")
		}
	}
}

// Where a feed has more than its newest as others have them among theirs, nothing would go, and nothing is
// written anew.
func TestNothingIsWrittenAnewWhereNothingWouldGo(t *testing.T) {
	f := testFeeds(t.TempDir())
	now := time.Unix(1_800_000_000, 0).UTC()
	posts := some(3 * mostEach) // of each collection its newest, and of person/ada all of them
	for _, p := range posts {
		p.Date = now.Add(-time.Hour)
	}
	put(t, f, posts...)
	enter(t, f, testRenderer(t), 50, now)
	folder := f.shelf.dir
	for range 2 {
		if err := f.locked(func() error { return cleanedAt(f, now, keep) }); err != nil {
			t.Fatal(err)
		}
	}
	if f.shelf.dir != folder || f.shelf.sizes()["person/ada"] != len(posts) {
		t.Errorf("%s became %s, with %v", folder, f.shelf.dir, f.shelf.sizes())
	}
}

// A post goes from the list once it is in its feeds for long enough; its entries stay.
func TestEntriesOutliveTheListOfPosts(t *testing.T) {
	f := testFeeds(t.TempDir())
	now := time.Unix(1_800_000_000, 0).UTC()
	posts := some(12)
	for n, p := range posts {
		p.To = []string{"person/ada"}
		if p.Date = now.Add(-time.Hour); n < 10 {
			p.Date = now.Add(-8 * 24 * time.Hour)
		}
		r := testRenderer(t)
		if n == 3 { // there is no template for it: it is no entry, and stays to be seen
			r.read = func(string) ([]byte, error) { return nil, os.ErrNotExist }
		}
		put(t, f, p)
		enter(t, f, r, 1, now)
	}
	shown := showFeed(t, f, "person/ada")
	if err := f.locked(func() error { return cleanedAt(f, now, 7*24*time.Hour) }); err != nil {
		t.Fatal(err)
	}
	again := testFeeds(f.dir)
	for _, f := range []*Feeds{f, again} {
		if diff := cmp.Diff(shown, showFeed(t, f, "person/ada")); diff != "" {
			t.Errorf("the feed changed (-want +got):\n%s", diff)
		}
		rows, err := f.list()
		if err != nil {
			t.Fatal(err)
		}
		var left []int
		for _, p := range rows {
			left = append(left, p.Seq)
		}
		if want := []int{4, 11, 12}; !slices.Equal(left, want) || rows[0].Status != "error" || rows[0].Reason == "" {
			t.Errorf("%v are listed, want %v: %+v", left, want, rows[0])
		}
	}
	if err := again.locked(func() error { return cleanedAt(again, now.Add(30*24*time.Hour), 7*24*time.Hour) }); err != nil {
		t.Fatal(err)
	}
	if n := len(showFeed(t, again, "person/ada")); n != 2 {
		t.Errorf("%d entries are left of two", n)
	}
}

// fitsAtom has xmllint judge a document by the schema of RFC 4287.
func fitsAtom(t *testing.T, document string) {
	t.Helper()
	schema, err := filepath.Abs("../../../shared/fixtures/atom/atom.rng")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(schema); err != nil {
		t.Skip("the schema is not here: ", err)
	}
	program, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(program, "--noout", "--relaxng", schema, "-")
	cmd.Stdin = strings.NewReader(document)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, document)
	}
}

// readByAnother has python3-feedparser read a document, and gives of each entry its id, title, author, time
// and text.
func readByAnother(t *testing.T, document string) (entries [][]string) {
	t.Helper()
	const script = `import feedparser, json, sys
d = feedparser.parse(sys.stdin.buffer.read())
if d.bozo or d.version != "atom10": sys.exit(repr(d.get("bozo_exception")) + d.version)
print(json.dumps([[e.id, e.title, e.author, e.updated, e.content[0].value] for e in d.entries]))`
	cmd := exec.Command("/usr/bin/python3", "-c", script)
	cmd.Stdin = strings.NewReader(document)
	if exec.Command("/usr/bin/python3", "-c", "import feedparser").Run() != nil {
		t.Skip("python3-feedparser is not here")
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	if err := json.Unmarshal(out, &entries); err != nil {
		t.Fatal(err)
	}
	return entries
}

// A reader of others' finds in the Atom of a feed what was put in, escaped as it was.
func TestAnotherReaderReadsAtom(t *testing.T) {
	r, now := testRenderer(t), time.Unix(1_800_000_000, 0)
	var rows []Row
	var want [][]string
	for _, p := range some(3) {
		p.ID, p.Data["person"], p.Data["label"] = fmt.Sprint("commit ", p.Seq), "Ada & <Bob>", "Müller's \"map\" <script>alert(1)</script> &amp;"
		texts, err := r.renderAll(p)
		if err != nil {
			t.Fatal(err)
		}
		said, err := summary(texts)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, Row{Post: *p, Summary: said})
		want = append(want, []string{urn("post " + p.ID), said["text"], "Ada & <Bob>", layout.FormatTime(p.Date), ""})
	}
	var out strings.Builder
	if err := WriteAtom(&out, "person/ada", rows, now); err != nil {
		t.Fatal(err)
	}
	got := readByAnother(t, out.String())
	for i := range got {
		if text := got[i][4]; !strings.Contains(text, "Müller") || strings.Contains(text, "<script") {
			t.Errorf("the text is %q", text)
		}
		got[i][4] = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-put in +read):\n%s", diff)
	}
}

func TestAtomFitsItsSchema(t *testing.T) {
	hostile := []*Post{
		{ID: "1", Type: "museum.loan", Date: time.Unix(0, 0), Data: map[string]any{}}, // of nobody
		{ID: "2", Type: "x\x00.y", Date: time.Unix(1, 5), Poster: "\x01\xff <a@b>", Data: map[string]any{"person": "]]> & <b>\x0b"}},
		{ID: "3", Type: "", Date: time.Unix(2, 0), Poster: strings.Repeat("long", 5000), Data: map[string]any{"person": 7}},
	}
	for _, posts := range [][]*Post{nil, hostile, some(3)} {
		var rows []Row
		for _, p := range posts {
			rows = append(rows, Row{Post: *p, Summary: map[string]string{"text": "a\x1b\ufffe\xc3<", "atom": "<p>\x00</p>"}})
		}
		for _, of := range []pages{{}, {self: "./ada.atom", current: "./ada.atom", before: "./ada-2026-10.atom", archive: true}} {
			var out strings.Builder
			if err := writeAtom(&out, "person/ad\x01a", rows, time.Unix(1_800_000_000, 0), of); err != nil {
				t.Fatal(err)
			}
			fitsAtom(t, out.String())
		}
	}
}

// A month that is over has a document of its own, which is not written anew; each leads to the
// one before (RFC 5005, section 4).
func TestAMonthThatIsOverIsArchived(t *testing.T) {
	to := filepath.Join(t.TempDir(), "ada%2Fb")
	of := func(month time.Month, n int) (rows []Row) {
		for i := range n {
			rows = append(rows, Row{Post: Post{ID: fmt.Sprint(month, i), Type: "a.b", Poster: "ada", Date: time.Date(2026, month, 20-i, 0, 0, 0, 0, time.UTC)}})
		}
		return rows
	}
	read := func(name string) (f atomFeed) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(filepath.Dir(to), name))
		if err != nil {
			t.Fatal(err)
		}
		fitsAtom(t, string(data))
		if err := xml.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	link := func(f atomFeed, rel string) string {
		for _, l := range f.Links {
			if l.Rel == rel {
				return l.Href
			}
		}
		return ""
	}
	october := of(time.October, 3)
	if err := writePages(to, "person/ada", october, october, time.Date(2026, 10, 30, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if f := read("ada%2Fb.atom"); len(f.Entries) != 3 || link(f, "prev-archive") != "" || f.Archive != nil {
		t.Errorf("%+v", f)
	}
	november := slices.Concat(of(time.November, 2), october)
	if err := writePages(to, "person/ada", november, november, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	old := read("ada%2Fb-2026-10.atom")
	if len(old.Entries) != 3 || old.Archive == nil || link(old, "current") != "./ada%252Fb.atom" || link(old, "self") != "./ada%252Fb-2026-10.atom" {
		t.Errorf("%+v", old)
	}
	december := of(time.November, 2) // what was of October is dropped by now
	if err := writePages(to, "person/ada", nil, december, time.Date(2026, 12, 30, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if f := read("ada%2Fb.atom"); link(f, "prev-archive") != "./ada%252Fb-2026-11.atom" {
		t.Errorf("%+v", f.Links)
	}
	if f := read("ada%2Fb-2026-11.atom"); link(f, "prev-archive") != "./ada%252Fb-2026-10.atom" || len(f.Entries) != 2 {
		t.Errorf("%+v", f)
	}
	if again := read("ada%2Fb-2026-10.atom"); len(again.Entries) != 3 {
		t.Errorf("it was written anew: %+v", again)
	}
}

// What was written by whoever had lost the lock does not count, wherever it comes between what
// was written by those who had it.
func TestFramesOfATurnThatIsOverAreFencedOut(t *testing.T) {
	posts := some(4)
	for _, p := range posts {
		p.Part = 0
	}
	begin := func() (f, stale *Feeds) {
		f = testFeeds(t.TempDir())
		put(t, f, posts[:2]...)
		stale = testFeeds(f.dir)
		if err := stale.locked(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := f.locked(func() error { return nil }); err != nil { // takes the next turn
			t.Fatal(err)
		}
		return f, stale
	}
	// write has a process write its entries and the third post, as if it held the lock.
	write := func(f *Feeds) {
		t.Helper()
		bodies := singles{path: f.shelf.bodies()}
		defer bodies.close()
		if err := f.shelf.make(0, []int{0, 1}, f.turn, testRenderer(t), func() time.Time { return time.Unix(int64(f.turn), 0) }, &bodies); err != nil {
			t.Fatal(err)
		}
		body, err := posts[2].body()
		if err != nil {
			t.Fatal(err)
		}
		at, err := appendTo(f.shelf.bodies(), appendSummed(nil, body))
		if err != nil {
			t.Fatal(err)
		}
		l := listing{through: "d", next: 4, records: []record{{seq: 3, audience: f.shelf.audience([]string{fmt.Sprint("person/", f.turn)}), body: span{at, sumSize + len(body)}}}}
		if err := f.shelf.list(f.turn, l); err != nil {
			t.Fatal(err)
		}
	}
	for _, staleFirst := range []bool{true, false} {
		f, stale := begin()
		if staleFirst {
			write(stale)
			write(f)
		} else {
			write(f)
			write(stale)
		}
		again := testFeeds(f.dir)
		rows := showFeed(t, again, "person/ada")
		if diff := cmp.Diff([]int{2, 1}, seqsOf(rows)); diff != "" {
			t.Errorf("stale first %t (-want +got):\n%s", staleFirst, diff)
		}
		for _, r := range rows {
			if r.Made.Unix() != int64(f.turn) {
				t.Errorf("stale first %t: post %d has the entry of turn %d", staleFirst, r.Seq, r.Made.Unix())
			}
		}
		if n := len(again.shelf.records); n != 3 || again.shelf.feeds(again.shelf.records[2].audience)[0] != fmt.Sprint("person/", f.turn) {
			t.Errorf("stale first %t: %d posts", staleFirst, n)
		}
		enter(t, again, testRenderer(t), 5, time.Unix(99, 0))
		if rows := showFeed(t, testFeeds(f.dir), fmt.Sprint("person/", f.turn)); len(rows) != 1 || rows[0].Made.Unix() != 99 {
			t.Errorf("stale first %t: %+v", staleFirst, rows)
		}
	}
}

// Of all feeds those entries stay that are among the newest million.
func TestEntriesBeyondAMillionAreDropped(t *testing.T) {
	f := testFeeds(t.TempDir())
	now := time.Unix(1_800_000_000, 0).UTC()
	const feeds = 6000
	var to []string
	for n := range feeds {
		to = append(to, fmt.Sprintf("person/p%04d", n))
	}
	posts := some(mostEach)
	for _, p := range posts {
		p.To, p.Date = to, now.Add(-time.Hour)
	}
	put(t, f, posts...)
	enter(t, f, testRenderer(t), atOnce, now)
	if n := f.shelf.entries(); n != mostEach*feeds {
		t.Fatalf("%d entries", n)
	}
	if err := f.locked(func() error { return cleanedAt(f, now, keep) }); err != nil {
		t.Fatal(err)
	}
	const left = mostInAll / feeds
	if n := f.shelf.entries(); n != left*feeds || f.shelf.records[0].seq != len(posts)-left+1 {
		t.Errorf("%d entries are left of %d; the oldest is of post %d", n, mostEach*feeds, f.shelf.records[0].seq)
	}
}
