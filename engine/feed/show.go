package feed

import (
	"bytes"
	"context"
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
func (f *Feeds) Show(ctx context.Context, feed string, most int) (rows []Row, err error) {
	err = f.answer(ctx, func() error {
		r := newRows(f.shelf, 0)
		defer r.close()
		rows, err = r.of(feed, f.ledger.Now().Add(-keep), mostEach)
		return err
	})
	return shown(rows, most), err
}

// shown is what is shown of a feed's newest entries.
func shown(rows []Row, most int) []Row {
	rows = rows[:min(len(rows), mostEach)]
	if rows = gathered(rows); len(rows) > most && most > 0 {
		rows = rows[:most]
	}
	return rows
}

// rowsOf reads entries; with many read at once, each post once.
type rowsOf struct {
	shelf  *shelf
	bodies singles
	texts  [parts]singles
	known  map[int]Row // by place in records; nil: few are read
}

func newRows(s *shelf, ahead int) *rowsOf {
	r := &rowsOf{shelf: s, bodies: singles{path: s.bodies(), ahead: ahead}}
	for n := range r.texts {
		r.texts[n] = singles{path: s.texts(n), ahead: ahead}
	}
	if ahead > 0 {
		r.known = map[int]Row{}
	}
	return r
}

func (r *rowsOf) close() {
	r.bodies.close()
	for n := range r.texts {
		r.texts[n].close()
	}
}

// of gives the entries of a feed since a time, the newest first and at most so many; 0: all.
func (r *rowsOf) of(feed string, since time.Time, most int) (rows []Row, err error) {
	s := r.shelf
	number, is := s.numbers[feed]
	if !is {
		return nil, nil
	}
	gets := make([]bool, len(s.sets))
	for n, set := range s.sets {
		gets[n] = slices.Contains(set, number)
	}
	for i := len(s.records) - 1; i >= 0 && (most == 0 || len(rows) < most); i-- {
		e := &s.records[i]
		if !gets[e.audience] || e.made == 0 || e.failed || e.date < since.Unix() {
			continue
		}
		row, known := r.known[i]
		if !known {
			if row, err = r.row(i); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (r *rowsOf) row(i int) (row Row, err error) {
	e := &r.shelf.records[i]
	p, err := r.shelf.post(i, &r.bodies)
	if err != nil {
		return row, err
	}
	texts, err := r.texts[e.part].at(e.text, false)
	if err != nil {
		return row, err
	}
	p.To = r.shelf.feeds(e.audience)
	row = Row{Post: *p, Made: time.UnixMilli(e.made).UTC()}
	if row.Summary, err = summary(texts); err == nil && r.known != nil {
		r.known[i] = row
	}
	return row, err
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
func (f *Feeds) Posts(ctx context.Context) (rows []PostRow, err error) {
	err = f.answer(ctx, func() error {
		rows, err = f.list()
		return err
	})
	return rows, err
}

func (f *Feeds) list() ([]PostRow, error) {
	s, rows := f.shelf, []PostRow{}
	from := newRows(s, copyAtOnce)
	defer from.close()
	for i := range s.records {
		e := &s.records[i]
		if e.unlisted {
			continue
		}
		p, err := s.post(i, &from.bodies)
		if err != nil {
			return nil, err
		}
		p.To = s.feeds(e.audience)
		r := PostRow{Post: *p, Status: "posted", Modified: p.Date}
		if e.made != 0 {
			r.Status, r.Modified = "processed", time.UnixMilli(e.made).UTC()
		}
		if e.failed {
			why, err := from.texts[e.part].at(e.text, false)
			if err != nil {
				return nil, err
			}
			r.Status, r.Reason = "error", string(why)
		}
		rows = append(rows, r)
	}
	for _, p := range s.pending {
		rows = append(rows, PostRow{Post: Post{ID: p.Commit, Date: p.Since, Data: map[string]any{}}, Status: "pending", Reason: p.Reason, Modified: p.Since})
	}
	return rows, nil
}

// Count gives how many feeds have entries, and how many posts are listed.
func (f *Feeds) Count() (feeds, posts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shelf == nil {
		return 0, 0
	}
	for i := range f.shelf.records {
		if !f.shelf.records[i].unlisted {
			posts++
		}
	}
	return len(f.shelf.sizes()), posts
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
func (f *Feeds) WriteAll(ctx context.Context, dir string) (n int, err error) {
	err = f.answer(ctx, func() error {
		now, from := f.ledger.Now(), newRows(f.shelf, copyAtOnce)
		defer from.close()
		names := slices.Sorted(maps.Keys(f.shelf.sizes()))
		for _, name := range names {
			all, err := from.of(name, now.Add(-keep), 0)
			if err != nil {
				return err
			}
			if err := writeFeed(dir, name, all, now); err != nil {
				return err
			}
		}
		n = len(names)
		return nil
	})
	return n, err
}

// writeFeed writes the files of one feed.
func writeFeed(dir, name string, all []Row, now time.Time) error {
	// A name may hold a slash of somebody's address.
	to := filepath.Join(dir, filepath.Dir(name), layout.EncodePath(filepath.Base(name)))
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	rows := shown(slices.Clone(all), 0)
	data, err := layout.EncodeJSON(rows)
	if err != nil {
		return err
	}
	if err := disk.WriteFile(to+".json", data, 0o666); err != nil {
		return err
	}
	return writePages(to, name, rows, all, now)
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
