package feed

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Row is an entry of one feed, with its post.
type Row struct {
	Post
	Summary map[string]string `json:"summary"`
	Made    time.Time         `json:"made"`
	More    int               `json:"more,omitempty"` // others that it stands for: the same person, type and parent
}

// together is from how many on, within an hour, entries of one person, type and parent are
// shown as one.
const together = 5

// Show gives the newest entries of a feed, most of them at most.
func (f *Feeds) Show(feed string, most int) []Row {
	rows := f.all(feed)
	rows = rows[:min(len(rows), mostEach)]
	if rows = gathered(rows); len(rows) > most && most > 0 {
		rows = rows[:most]
	}
	return rows
}

// all are the entries of a feed, the newest first.
func (f *Feeds) all(feed string) (rows []Row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	posts := f.bySeq()
	for _, e := range f.entries() {
		if p := posts[e.Seq]; p != nil && slices.Contains(e.Feeds, feed) {
			rows = append(rows, Row{Post: *p, Summary: e.Summary, Made: e.Date})
		}
	}
	return rows
}

// gathered shows as one what many of a kind are within an hour; the newest stands for them.
func gathered(rows []Row) (out []Row) {
	kind := func(r *Row) string {
		return fmt.Sprint(r.Poster, "\x00", r.Type, "\x00", r.Collection, "\x00", r.Data["parent"])
	}
	taken := make([]bool, len(rows))
	for i := range rows {
		if taken[i] {
			continue
		}
		var others []int
		for j := i + 1; j < len(rows) && rows[i].Date.Sub(rows[j].Date) <= time.Hour; j++ {
			if !taken[j] && kind(&rows[i]) == kind(&rows[j]) {
				others = append(others, j)
			}
		}
		if len(others)+1 >= together {
			rows[i].More = len(others)
			for _, j := range others {
				taken[j] = true
			}
		}
		out = append(out, rows[i])
	}
	return out
}

// Text is an entry's summary in a format, and how many others it stands for.
func (r *Row) Text(format string) string {
	if r.More > 0 {
		return fmt.Sprintf("%s (and %d others)", r.Summary[format], r.More)
	}
	return r.Summary[format]
}

// PostRow is a post with how it stands.
type PostRow struct {
	Post
	Status   string    `json:"status"` // pending, posted, processed, error
	Reason   string    `json:"reason,omitempty"`
	Modified time.Time `json:"modified"`
}

// Posts lists the posts, the oldest first.
func (f *Feeds) Posts() []PostRow {
	f.mu.Lock()
	defer f.mu.Unlock()
	made := map[int]Entry{}
	for _, e := range f.entries() {
		made[e.Seq] = e
	}
	rows := []PostRow{}
	for _, p := range f.posts {
		r := PostRow{Post: p, Status: "posted", Modified: p.Date}
		if e, is := made[p.Seq]; is {
			r.Status, r.Reason, r.Modified = "processed", e.Error, e.Date
		}
		if r.Reason != "" {
			r.Status = "error"
		}
		rows = append(rows, r)
	}
	for _, p := range f.pending {
		rows = append(rows, PostRow{Post: Post{ID: p.Commit, Date: p.Since, Data: map[string]any{}}, Status: "pending", Reason: p.Reason, Modified: p.Since})
	}
	return rows
}

// The elements of an Atom feed (RFC 4287).
type (
	atomFeed struct {
		XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
		ID      string      `xml:"id"`
		Title   string      `xml:"title"`
		Updated string      `xml:"updated"`
		Links   []atomLink  `xml:"link"`
		Archive *struct{}   `xml:"http://purl.org/syndication/history/1.0 archive"`
		Entries []atomEntry `xml:"entry"`
	}
	atomLink struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	}
	atomEntry struct {
		ID       string       `xml:"id"`
		Title    string       `xml:"title"`
		Updated  string       `xml:"updated"`
		Author   atomPerson   `xml:"author"`
		Category atomCategory `xml:"category"`
		Content  atomText     `xml:"content"`
	}
	atomPerson struct {
		Name string `xml:"name"`
	}
	atomCategory struct {
		Term string `xml:"term,attr"`
	}
	atomText struct {
		Type string `xml:"type,attr"`
		Text string `xml:",chardata"`
	}
)

// urn is a name for good: a UUID made of a text (RFC 9562, version 8).
func urn(text string) string {
	s := sha256.Sum256([]byte(text))
	s[6], s[8] = s[6]&0x0f|0x80, s[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", s[0:4], s[4:6], s[6:8], s[8:10], s[10:16])
}

// WriteAtom writes rows, the newest first, as an Atom feed; one without entries has the time
// now.
func WriteAtom(w io.Writer, feed string, rows []Row, now time.Time) error {
	return writeAtom(w, feed, rows, now, pages{})
}

// pages are the names of the documents that a feed is parted into (RFC 5005, section 4); "": a
// document by itself.
type pages struct {
	self, current, before string
	archive               bool // it is of a month that is over, and does not change any more
}

func writeAtom(w io.Writer, feed string, rows []Row, now time.Time, of pages) error {
	a := atomFeed{ID: urn("feed " + feed), Title: ledger.Printable(feed), Updated: layout.FormatTime(now)}
	for _, l := range []atomLink{{"self", of.self}, {"current", of.current}, {"prev-archive", of.before}} {
		if l.Href != "" {
			a.Links = append(a.Links, l)
		}
	}
	if of.archive {
		a.Archive = &struct{}{}
	}
	for n := range rows {
		r := &rows[n]
		if n == 0 {
			a.Updated = layout.FormatTime(r.Date)
		}
		author, _ := r.Data["person"].(string)
		if author == "" {
			author = r.Poster
		}
		if author == "" {
			author = "unknown"
		}
		a.Entries = append(a.Entries, atomEntry{ID: urn("post " + r.ID), Title: r.Text("text"), Updated: layout.FormatTime(r.Date),
			Author: atomPerson{author}, Category: atomCategory{r.Type}, Content: atomText{"html", r.Text("atom")}})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(a); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// WriteAll writes FOLDER/person/NAME.atom and FOLDER/collection/NAME.atom, and each as .json;
// and, once a month is over, NAME-2026-11.atom, which has all entries of it and is not written
// anew. Files that are there are replaced, each by one rename.
func (f *Feeds) WriteAll(dir string) (n int, err error) {
	now := f.ledger.Now()
	for _, name := range f.Names() {
		rows := f.Show(name, 0)
		// A name may hold a slash of somebody's address.
		to := filepath.Join(dir, filepath.Dir(name), layout.EncodePath(filepath.Base(name)))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return n, err
		}
		data, err := layout.EncodeJSON(rows)
		if err != nil {
			return n, err
		}
		if err := disk.WriteFile(to+".json", data, 0o666); err != nil {
			return n, err
		}
		if err := writePages(to, name, rows, f.all(name), now); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// writePages writes a feed's document, and one of each month that is over and has none yet.
func writePages(to, name string, rows, all []Row, now time.Time) error {
	const month = "2006-01"
	base, of := filepath.Base(to), map[string][]Row{}
	for _, r := range all {
		if m := r.Date.Format(month); m < now.Format(month) {
			of[m] = append(of[m], r)
		}
	}
	before := ""
	months := slices.Sorted(maps.Keys(of))
	old, err := filepath.Glob(to + "-[0-9][0-9][0-9][0-9]-[0-9][0-9].atom")
	if err != nil {
		return err
	}
	slices.Sort(old)
	for _, path := range old {
		if m := strings.TrimSuffix(path[len(to)+1:], ".atom"); len(months) == 0 || m < months[0] {
			before = filepath.Base(path)
		}
	}
	for _, m := range months {
		self := base + "-" + m + ".atom"
		if _, err := os.Lstat(to + "-" + m + ".atom"); err != nil {
			var out bytes.Buffer
			err := writeAtom(&out, name, of[m], now, pages{self: href(self), current: href(base + ".atom"), before: href(before), archive: true})
			if err == nil {
				err = disk.WriteFile(to+"-"+m+".atom", out.Bytes(), 0o666)
			}
			if err != nil {
				return err
			}
		}
		before = self
	}
	var out bytes.Buffer
	if err := writeAtom(&out, name, rows, now, pages{self: href(base + ".atom"), before: href(before)}); err != nil {
		return err
	}
	return disk.WriteFile(to+".atom", out.Bytes(), 0o666)
}

// href is a file's name as a reference.
func href(name string) string {
	if name == "" {
		return ""
	}
	return (&url.URL{Path: "./" + name}).String()
}
