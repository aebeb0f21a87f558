package feed

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	f := &Feeds{dir: dir}
	f.forget()
	return f
}

func testRenderer(t *testing.T) *renderer {
	return &renderer{parsed: map[string]template{}, warn: func(name string, err error) { t.Errorf("%s: %v", name, err) },
		read: func(name string) ([]byte, error) { return os.ReadFile("../../templates/feeds/" + name) }}
}

// TestALineThatWasCutIsMadeAgain cuts a part's file at each byte of its last line, as a crash
// does: the next cycle has each post once.
func TestALineThatWasCutIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	f := testFeeds(dir)
	posts := some(4)
	for _, p := range posts {
		p.Part = 0
	}
	make := func(f *Feeds) {
		t.Helper()
		var open []*Post
		for _, p := range posts {
			if p.Seq > f.parts[0].through {
				open = append(open, p)
			}
		}
		for n := range open { // a line for each
			if err := f.parts[0].make(open[n:n+1], 1, testRenderer(t), func() time.Time { return time.Unix(0, 0) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	make(f)
	whole, err := os.ReadFile(filepath.Join(dir, "part-00"))
	if err != nil {
		t.Fatal(err)
	}
	last := strings.LastIndexByte(strings.TrimSuffix(string(whole), "\n"), '\n') + 1
	for cut := last; cut < len(whole); cut += 7 {
		if err := os.WriteFile(filepath.Join(dir, "part-00"), whole[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		again := testFeeds(dir)
		if err := again.load(); err != nil {
			t.Fatal(err)
		}
		if n := len(again.parts[0].entries); n != 3 {
			t.Fatalf("cut at %d of %d: %d entries are left of 4", cut, len(whole), n)
		}
		make(again)
		data, err := os.ReadFile(filepath.Join(dir, "part-00"))
		if err != nil || string(data) != string(whole) {
			t.Fatalf("cut at %d: made again it differs (%v)", cut, err)
		}
	}
	whole[last/2] ^= 1 // damage that no crash makes
	if err := os.WriteFile(filepath.Join(dir, "part-00"), whole, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := testFeeds(dir).load(); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a flipped bit: %v", err)
	}
}

func TestMarkupOfPeopleIsEscapedAndControlCharactersAreShown(t *testing.T) {
	r := testRenderer(t)
	text, err := r.render(some(1)[0], "text")
	if err != nil || strings.ContainsRune(text, '\x1b') {
		t.Errorf("%q, %v", text, err)
	}
	html, err := r.render(some(1)[0], "html")
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
		f.posts = append(f.posts, *p)
		if err := f.parts[p.Part].make([]*Post{p}, 1, testRenderer(t), func() time.Time { return now }); err != nil {
			t.Fatal(err)
		}
	}
	waiting := Post{Seq: len(posts) + 1, Date: now.Add(-keep - time.Hour), To: []string{"person/ada"}} // it has no entry yet
	f.posts = append(f.posts, waiting)
	if err := f.cleanAt(now, keep); err != nil {
		t.Fatal(err)
	}
	if last := len(f.posts) - 1; f.posts[last].Seq != waiting.Seq {
		t.Fatal("a post that waits for its entry was dropped")
	}
	f.posts = f.posts[:len(f.posts)-1]
	sizes := f.sizes()
	if sizes["person/ada"] != mostEach || sizes["collection/rare"] != 9 || len(f.posts) != mostEach+9 {
		t.Errorf("%v, %d posts", sizes, len(f.posts))
	}
	again := testFeeds(f.dir)
	if err := again.load(); err != nil || len(again.posts) != len(f.posts)+1 || again.sizes()["person/ada"] != mostEach {
		t.Errorf("read again: %v, %d posts", err, len(again.posts))
	}
}

// A post goes from the list once it is in its feeds for long enough; what has it stays whole.
func TestEntriesOutliveTheListOfPosts(t *testing.T) {
	f := testFeeds(t.TempDir())
	now := time.Unix(1_800_000_000, 0).UTC()
	posts := some(12)
	for n, p := range posts {
		p.To = []string{"person/ada"}
		if p.Date = now.Add(-time.Hour); n < 10 {
			p.Date = now.Add(-8 * 24 * time.Hour)
		}
		f.posts = append(f.posts, *p)
		r := testRenderer(t)
		if n == 3 { // there is no template for it: it is no entry, and stays to be seen
			r.read = func(string) ([]byte, error) { return nil, os.ErrNotExist }
		}
		if err := f.parts[p.Part].make([]*Post{p}, 1, r, func() time.Time { return now }); err != nil {
			t.Fatal(err)
		}
	}
	shown := f.Show("person/ada", 0)
	if err := f.cleanAt(now, 7*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	var left []int
	for _, p := range f.Posts() {
		left = append(left, p.Seq)
	}
	if want := []int{4, 11, 12}; !slices.Equal(left, want) {
		t.Errorf("%v are listed, want %v", left, want)
	}
	again := testFeeds(f.dir)
	if err := again.load(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*Feeds{f, again} {
		if diff := cmp.Diff(shown, f.Show("person/ada", 0)); diff != "" {
			t.Errorf("the feed changed (-want +got):\n%s", diff)
		}
	}
	if err := again.cleanAt(now.Add(30*24*time.Hour), 7*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := len(again.Show("person/ada", 0)); n != 2 {
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

// A line that was written by whoever had lost the lock does not count.
func TestALineOfATurnThatIsOverIsFencedOut(t *testing.T) {
	f := testFeeds(t.TempDir())
	posts := some(3)
	for n, turn := range []int{4, 3, 5} {
		posts[n].Part = 0
		if err := f.parts[0].make(posts[n:n+1], turn, testRenderer(t), func() time.Time { return time.Unix(0, 0) }); err != nil {
			t.Fatal(err)
		}
	}
	again := testFeeds(f.dir)
	if err := again.load(); err != nil {
		t.Fatal(err)
	}
	if got := again.parts[0].entries; len(got) != 2 || got[0].Seq != 1 || got[1].Seq != 3 {
		t.Errorf("%+v", got)
	}
	if turn, err := again.takeTurn(); err != nil || turn != 6 {
		t.Errorf("turn %d, %v", turn, err)
	}
}
