package feed

import (
	"bytes"
	"errors"
	htmltemplate "html/template"
	"io"
	"io/fs"
	"maps"
	"strings"
	texttemplate "text/template"

	"bagpipe/engine/audience"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/templates"
)

// Formats are those that have templates; json has none: it is the data as they are.
var formats = []string{"text", "html", "atom"}

const maxSummary = 4096

// template is what text/template and html/template have in common.
type template interface{ Execute(io.Writer, any) error }

// renderer renders posts by the templates of one commit.
type renderer struct {
	read   func(name string) ([]byte, error)
	parsed map[string]template // nil: it is not there, or cannot be used
	lines  map[string][]string // the templates for a type
	warn   func(name string, err error)
}

func (f *Feeds) renderer(v gitstore.View) *renderer {
	return &renderer{parsed: map[string]template{}, lines: map[string][]string{},
		warn: func(name string, err error) {
			f.ledger.Log.Warn("a feed template is passed over", "template", name, "err", err)
		},
		read: func(name string) ([]byte, error) {
			data, err := v.ReadFile(audience.Dir + "/templates/" + name)
			if errors.Is(err, fs.ErrNotExist) {
				return fs.ReadFile(templates.Feeds, "feeds/"+name)
			}
			return data, err
		}}
}

func (r *renderer) inLine(kind string) []string {
	names, known := r.lines[kind]
	if !known {
		names = inLine(kind)
		r.lines[kind] = names
	}
	return names
}

// inLine names the templates for a type, the most special first.
func inLine(kind string) (names []string) {
	words := strings.Split(kind, ".")
	n := len(words)
	names = append(names, strings.Join(words, "/"))
	for up := n - 2; up >= 1; up-- {
		names = append(names, strings.Join(words[:up], "/")+"/"+words[n-1])
	}
	for up := n - 1; up >= 1; up-- {
		names = append(names, strings.Join(words[:up], "/")+"/generic")
	}
	if words[0] != "bagpipe" {
		names = append(names, "bagpipe/generic")
	}
	return names
}

// renderAll gives the texts of a post, each with its length before it.
func (r *renderer) renderAll(p *Post) (texts []byte, err error) {
	values := valuesOf(p)
	for _, format := range formats {
		text, err := r.render(p.Type, format, values)
		if err != nil {
			return nil, err
		}
		texts = appendText(texts, text)
	}
	return texts, nil
}

// summary gives what renderAll made, by format.
func summary(texts []byte) (map[string]string, error) {
	d, by := decoder{rest: texts}, map[string]string{}
	for _, format := range formats {
		by[format] = string(d.text())
	}
	if d.bad {
		return nil, errDamaged
	}
	return by, nil
}

// valuesOf is what templates are filled with: the data, and what the commit says, which no data of a post
// stand in for.
func valuesOf(p *Post) map[string]any {
	values := map[string]any{"person": p.Poster}
	for key, value := range p.Data {
		if text, is := value.(string); is {
			value = ledger.Printable(text)
		}
		values[key] = value
	}
	maps.Copy(values, map[string]any{"type": p.Type, "collection": p.Collection, "app": p.App, "date": p.Date, "poster": p.Poster})
	return values
}

// render gives the text of a post of a type in one format.
func (r *renderer) render(kind, format string, values map[string]any) (string, error) {
	for _, name := range r.inLine(kind) {
		name += "." + format + ".tmpl"
		t := r.template(name, format)
		if t == nil {
			continue
		}
		var out bytes.Buffer
		if err := t.Execute(&out, values); err != nil {
			r.warn(name, err)
			continue
		}
		text := strings.TrimSpace(out.String())
		if format == "text" {
			text = ledger.OneLine(text, maxSummary)
		}
		if len(text) <= maxSummary { // markup is not cut
			return text, nil
		}
		r.warn(name, errors.New("what it makes is too long"))
	}
	return "", errors.New("no template in " + format + " can be used")
}

func (r *renderer) template(name, format string) template {
	t, known := r.parsed[name]
	if known {
		return t
	}
	r.parsed[name] = nil
	data, err := r.read(name)
	if err == nil && format == "text" {
		parsed, perr := texttemplate.New(name).Parse(string(data))
		if err = perr; err == nil {
			t = parsed
		}
	} else if err == nil {
		parsed, perr := htmltemplate.New(name).Parse(string(data))
		if err = perr; err == nil {
			t = parsed
		}
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.warn(name, err)
		}
		return nil
	}
	r.parsed[name] = t
	return t
}
