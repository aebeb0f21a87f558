package feed

import (
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"bagpipe/layout"
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
	f.mu.Lock()
	defer f.mu.Unlock()
	posts := map[int]*Post{}
	for n := range f.posts {
		posts[f.posts[n].Seq] = &f.posts[n]
	}
	var rows []Row
	for _, e := range f.entries() {
		p := posts[e.Seq]
		for _, name := range e.Feeds {
			if name == feed && p != nil && len(rows) < mostEach {
				rows = append(rows, Row{Post: *p, Summary: e.Summary, Made: e.Date})
			}
		}
	}
	if rows = gathered(rows); len(rows) > most && most > 0 {
		rows = rows[:most]
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
	Status   string    `json:"status"` // posted, processed, error
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
	return rows
}

// The elements of an Atom feed (RFC 4287).
type (
	atomFeed struct {
		XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
		ID      string      `xml:"id"`
		Title   string      `xml:"title"`
		Updated string      `xml:"updated"`
		Entries []atomEntry `xml:"entry"`
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
	a := atomFeed{ID: urn("feed " + feed), Title: feed, Updated: layout.FormatTime(now)}
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
