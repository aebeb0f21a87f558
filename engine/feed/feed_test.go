package feed

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
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
			if err := f.parts[0].make(open[n:n+1], testRenderer(t), func() time.Time { return time.Unix(0, 0) }); err != nil {
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
		if err := f.parts[p.Part].make([]*Post{p}, testRenderer(t), func() time.Time { return now }); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.cleanAt(now); err != nil {
		t.Fatal(err)
	}
	sizes := f.sizes()
	if sizes["person/ada"] != mostEach || sizes["collection/rare"] != 9 || len(f.posts) != mostEach+9 {
		t.Errorf("%v, %d posts", sizes, len(f.posts))
	}
	again := testFeeds(f.dir)
	if err := again.load(); err != nil || len(again.posts) != len(f.posts) || again.sizes()["person/ada"] != mostEach {
		t.Errorf("read again: %v, %d posts", err, len(again.posts))
	}
}
