package pages

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

type itemView struct {
	ask.Detail
	Why    ask.ExplainedSaid
	Facts  []fact   // identifiers and metadata
	Marks  []mark   // milestones, in order
	Starts []string // workflows that can be started on it
	Files  int      // that it has
	Listed []ask.FileDetail
}

type fact struct{ Name, Value string }

type mark struct {
	Name layout.Name
	At   time.Time
}

// mostFiles and mostHistory are how much of an item a page lists.
const mostFiles, mostHistory = 200, 100

func (p *Pages) item(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	ctx := r.Context()
	id, err := p.d.Object(ctx, r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	v := itemView{}
	if v.Detail, err = p.d.Ask.ShowSome(ctx, id, mostFiles); err != nil {
		return "", nil, err
	}
	v.Listed, v.Files, v.Starts = v.Detail.Files, len(v.Detail.Files), p.d.Ask.Workflows()
	if of := v.Manifest.Inventory; of != nil {
		v.Files = of.Files
	}
	why, err := p.d.Ask.Why(id, "", "")
	if err != nil {
		return "", nil, err
	}
	v.Why, v.Facts = why.Said(p.d.Words), factsOf(v.Manifest)
	v.Why.Steps = together(v.Why.Steps)
	for name, at := range v.Milestones {
		v.Marks = append(v.Marks, mark{name, at})
	}
	slices.SortFunc(v.Marks, func(a, b mark) int { return a.At.Compare(b.At) })
	return "item", v, nil
}

// together says what helps several steps at the first of them, and makes one row of
// neighbours that wait for the same and that nothing further helps.
func together(steps []ask.WaitingSaid) (rows []ask.WaitingSaid) {
	said := map[fault.Remedy]bool{}
	for _, s := range steps {
		if said[s.Remedy] {
			s.Remedy, s.Command = fault.Remedy{}, ""
		}
		said[s.Remedy] = true
		if n := len(rows); n > 0 && rows[n-1].Workflow == s.Workflow && rows[n-1].Why == s.Why && s.Command == "" && s.Instead == "" {
			rows[n-1].Step += ", " + s.Step
			continue
		}
		rows = append(rows, s)
	}
	return rows
}

// historyView are commits, the newest first.
type historyView struct {
	Item  layout.ItemID // "": of everything
	Label string
	Lines []desk.Line
	Next  string // the commit to go on behind
}

// history reads a page of it: from a commit on, which is not shown.
func history(r *http.Request, d *desk.Desk, v *historyView) error {
	after := r.URL.Query().Get("after")
	from, err := d.Ask.HistoryFrom(r.Context(), v.Item, after, mostHistory+1)
	if err != nil {
		return err
	}
	for _, c := range from {
		if len(v.Lines) == mostHistory {
			v.Next = v.Lines[mostHistory-1].Commit
			break
		}
		v.Lines = append(v.Lines, desk.LineOf(c))
	}
	return nil
}

// itemLog shows the history of an item.
func (p *Pages) itemLog(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	id, err := p.d.Object(r.Context(), r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	m, err := p.d.Ask.Manifest(id)
	if err != nil {
		return "", nil, err
	}
	v := historyView{Item: id, Label: m.Label}
	return "itemlog", &v, history(r, p.d, &v)
}

type changeView struct {
	Item  layout.ItemID
	Line  desk.Line
	Files []changedFile
}

type changedFile struct {
	Path  string
	Lines []desk.Changed
}

// change shows how a commit changed the records of an item.
func (p *Pages) change(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	id, err := p.d.Object(r.Context(), r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	c, changed, err := p.d.Ask.Differences(r.Context(), id, r.PathValue("commit"))
	if err != nil {
		return "", nil, err
	}
	v := changeView{Item: id, Line: desk.LineOf(c)}
	for _, d := range changed {
		v.Files = append(v.Files, changedFile{d.Path, desk.Difference(d.Before, d.After)})
	}
	return "change", v, nil
}

// factsOf lists what an item is known by and described as.
func factsOf(m layout.Manifest) (facts []fact) {
	for _, k := range slices.Sorted(maps.Keys(m.Identifiers)) {
		facts = append(facts, fact{k, m.Identifiers[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(m.Metadata)) {
		facts = append(facts, fact{k, fmt.Sprint(m.Metadata[k])})
	}
	return facts
}

// file sends a file, or shows the beginning of a text.
func (p *Pages) file(w http.ResponseWriter, r *http.Request) (string, any, error) {
	id, err := p.d.Object(r.Context(), r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	name := r.PathValue("path")
	switch look := r.URL.Query().Get("look"); {
	case look == "":
		return "", nil, p.d.SendFile(w, r, id, name)
	case look == "picture":
		return "", nil, p.d.SendPicture(w, r, id, name)
	case desk.Pictured(name):
		f, _, err := p.d.OpenFile(r.Context(), id, name)
		if err != nil {
			return "", nil, err
		}
		defer f.Close()
		return "text", textView{Item: id, Title: name, Picture: fileAt(id, name) + "?look=picture", All: fileAt(id, name)}, nil
	}
	f, size, err := p.d.OpenFile(r.Context(), id, name)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	const most = 64 << 10
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", nil, err
	}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	return "text", textView{Item: id, Title: name, Text: text, Binary: !utf8.Valid(data) && int64(len(data)) == size, More: size > most, All: fileAt(id, name)}, nil
}

// fileAt is the address of a file.
func fileAt(id layout.ItemID, name string) string {
	return "items/" + string(id) + "/files/" + (&url.URL{Path: name}).EscapedPath()
}

type textView struct {
	Item    layout.ItemID
	Title   string
	Text    string
	Binary  bool
	Picture string // its address; "": it is a text
	More    bool   // the text goes on; it is what stands at one end
	All     string

	Log     string // its address; "": it is a file
	Running bool   // more may come
	Follow  bool
}

// log shows the end of what an attempt wrote; with all=yes, everything, as text.
func (p *Pages) log(w http.ResponseWriter, r *http.Request) (string, any, error) {
	id, err := p.d.Object(r.Context(), r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	step, attempt := r.PathValue("step"), r.PathValue("attempt")
	if r.URL.Query().Get("all") != "" {
		return "", nil, p.d.SendLog(w, r, id, step, attempt, r.URL.Query().Get("follow") != "")
	}
	f, running, err := p.d.OpenLog(r.Context(), id, step, attempt)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	const most = 64 << 10
	info, err := f.Stat()
	if err != nil {
		return "", nil, err
	}
	data := make([]byte, min(info.Size(), most))
	n, err := f.ReadAt(data, info.Size()-int64(len(data)))
	if err != nil && n < len(data) && err != io.EOF {
		return "", nil, err
	}
	at := fmt.Sprintf("items/%s/logs/%s/%s", id, step, attempt)
	return "text", textView{Item: id, Title: step + ", attempt " + attempt, Text: strings.ToValidUTF8(string(data[:n]), "\uFFFD"), More: info.Size() > most,
		All: at + "?all=yes", Log: at, Running: running, Follow: running && r.URL.Query().Get("follow") != ""}, nil
}
