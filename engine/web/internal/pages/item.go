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
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

type itemView struct {
	ask.Detail
	Why     ask.ExplainedSaid
	Facts   []fact // identifiers and metadata
	Marks   []mark // milestones, in order
	History []desk.Line
	More    int // files that are not listed
}

type fact struct{ Name, Value string }

type mark struct {
	Name layout.Name
	At   time.Time
}

// mostFiles and mostHistory are how much of an item a page lists.
const mostFiles, mostHistory = 500, 200

func (p *Pages) item(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	ctx := r.Context()
	id, err := p.d.Object(ctx, r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	v := itemView{}
	if v.Detail, err = p.d.Ask.Show(ctx, id); err != nil {
		return "", nil, err
	}
	why, err := p.d.Ask.Why(id, "", "")
	if err != nil {
		return "", nil, err
	}
	v.Why, v.Facts = why.Said(p.d.Words), factsOf(v.Manifest)
	for name, at := range v.Milestones {
		v.Marks = append(v.Marks, mark{name, at})
	}
	slices.SortFunc(v.Marks, func(a, b mark) int { return a.At.Compare(b.At) })
	for c, err := range p.d.Ask.History(ctx, id, mostHistory) {
		if err != nil {
			return "", nil, err
		}
		v.History = append(v.History, desk.LineOf(c))
	}
	if len(v.Files) > mostFiles {
		v.More = len(v.Files) - mostFiles
		v.Files = v.Files[:mostFiles]
	}
	return "item", v, nil
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
	if r.URL.Query().Get("look") == "" {
		return "", nil, p.d.SendFile(w, r, id, name)
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
	Item   layout.ItemID
	Title  string
	Text   string
	Binary bool
	More   bool // the text goes on; it is what stands at one end
	All    string

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
