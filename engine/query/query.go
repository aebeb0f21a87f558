package query

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/condition"
	"bagpipe/layout"
)

// Query is what is looked for: all that is given must fit.
type Query struct {
	Text       string   `yaml:"text,omitempty" json:"text,omitempty"`
	BBox       *Box     `yaml:"bbox,omitempty,flow" json:"bbox,omitempty"`
	From       string   `yaml:"from,omitempty" json:"from,omitempty"`
	Until      string   `yaml:"until,omitempty" json:"until,omitempty"`
	Tags       []string `yaml:"tags,omitempty,flow" json:"tags,omitempty"`
	Where      string   `yaml:"where,omitempty" json:"where,omitempty"`
	Collection string   `yaml:"collection,omitempty" json:"collection,omitempty"`

	Alike string           `yaml:"-" json:"-"` // as search.Searches.Alike names the items that are of one name and size
	Words []Phrase         `yaml:"-" json:"-"` // of Text
	Which *condition.Where `yaml:"-" json:"-"` // of Where; nil: all
	Span  Span             `yaml:"-" json:"-"` // of From and Until
	Also  *Query           `yaml:"-" json:"-"` // a second place, time or collection that must fit, as Narrowed leaves it; nil: none
}

// Saved is searches/NAME.yaml.
type Saved struct {
	Schema      int    `yaml:"schema"`
	Name        string `yaml:"name"`
	Description string `yaml:"description,omitempty"`
	Query       `yaml:",inline"`
}

const savedSchema = 1

// maxText bounds what is looked for; far above any question.
const maxText = 1000

// Check reads the texts of a query, and says which key is wrong, and how.
func (q *Query) Check() (key string, err error) {
	if len(q.Text) > maxText {
		return "text", fmt.Errorf("expected at most %d bytes", maxText)
	}
	if q.Words = Phrases(q.Text); len(q.Words) == 0 && strings.TrimSpace(q.Text) != "" {
		return "text", fmt.Errorf("expected a word or a number, not %q alone", q.Text)
	}
	if q.BBox != nil && !q.BBox.OnEarth() {
		return "bbox", fmt.Errorf("expected west,south,east,north in degrees, longitudes from -180 to 180 and latitudes from -90 to 90, not %s", q.BBox)
	}
	for i, tag := range q.Tags {
		if strings.TrimSpace(tag) == "" {
			return fmt.Sprintf("tags[%d]", i), errors.New("expected a tag")
		}
	}
	if q.Which, err = nil, nil; q.Where != "" {
		if q.Which, err = condition.ParseOnRecords(q.Where); err != nil {
			return "where", err
		}
	}
	return q.readSpan()
}

// always are the ends of a span that has none.
var always = Span{Start: time.Unix(-1<<40, 0).UTC(), End: time.Unix(1<<40, 0).UTC()}

func (q *Query) readSpan() (key string, err error) {
	q.Span = always
	var ok bool
	if q.From != "" {
		if q.Span.Start, _, ok = Period(q.From); !ok {
			return "from", notATime(q.From)
		}
	}
	if q.Until != "" {
		if _, q.Span.End, ok = Period(q.Until); !ok {
			return "until", notATime(q.Until)
		}
	}
	if q.Span.End.Before(q.Span.Start) {
		return "until", fmt.Errorf("expected a time from %s on, not %s", q.From, q.Until)
	}
	return "", nil
}

func notATime(text string) error {
	return fmt.Errorf("expected a year, month, day or time, as 2013, 2014-06, 2014-06-30 or 2014-06-30T12:00:00+02:00, not %q", text)
}

// Timed reports whether the query asks for a time.
func (q *Query) Timed() bool { return q.From != "" || q.Until != "" }

// Empty reports whether nothing is asked for.
func (q *Query) Empty() bool {
	return q.Text == "" && q.BBox == nil && !q.Timed() && len(q.Tags) == 0 && q.Where == "" && q.Collection == "" && q.Alike == ""
}

// Parse reads searches/NAME.yaml; its errors are *layout.FileError.
func Parse(file string, data []byte) (*Saved, error) {
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	s := &Saved{}
	if err := y.Decode(s); err != nil {
		return nil, err
	}
	if s.Schema != savedSchema {
		return nil, y.Errorf("$.schema", "expected schema: %d", savedSchema)
	}
	if _, err := layout.ParseName(s.Name); err != nil {
		return nil, y.Errorf("$.name", "%v", err)
	}
	if want := strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".yaml"); want != s.Name {
		return nil, y.Errorf("$.name", "expected the file's name without .yaml, not %q", s.Name)
	}
	if key, err := s.Check(); err != nil {
		return nil, y.Errorf("$."+key, "%v", err)
	}
	if s.Empty() {
		return nil, y.Errorf("$", "expected one of text, bbox, from, until, tags, where and collection")
	}
	return s, nil
}

// Box is a part of the Earth, in degrees of WGS 84: west, south, east, north. Where west is
// greater than east it lies across 180°.
type Box [4]float64

// ParseBox reads 116,39,117,41.
func ParseBox(text string) (*Box, error) {
	parts := strings.Split(text, ",")
	var b Box
	for i, part := range parts {
		n, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || len(parts) != len(b) {
			return nil, fmt.Errorf("expected west,south,east,north as 116,39,117,41, not %q", text)
		}
		b[i] = n
	}
	if !b.OnEarth() {
		return nil, fmt.Errorf("expected longitudes from -180 to 180 and latitudes from -90 to 90, the south first, not %q", text)
	}
	return &b, nil
}

func (b *Box) String() string { return fmt.Sprintf("%v,%v,%v,%v", b[0], b[1], b[2], b[3]) }

// OnEarth reports whether b is a part of the Earth.
func (b *Box) OnEarth() bool {
	return upTo(b[0], 180) && upTo(b[2], 180) && upTo(b[1], 90) && upTo(b[3], 90) && b[1] <= b[3]
}

// upTo is false of what is no number.
func upTo(n, most float64) bool { return n >= -most && n <= most }

// Parts are the box on this side of 180° and, if it lies across, that on the other.
func (b Box) Parts() []Box {
	if b[0] <= b[2] {
		return []Box{b}
	}
	return []Box{{b[0], b[1], 180, b[3]}, {-180, b[1], b[2], b[3]}}
}

// within reports whether all of b lies in o.
func (b Box) within(o Box) bool {
	return !slices.ContainsFunc(b.Parts(), func(p Box) bool {
		return !slices.ContainsFunc(o.Parts(), func(r Box) bool { return r[0] <= p[0] && p[2] <= r[2] && r[1] <= p[1] && p[3] <= r[3] })
	})
}

// Meets reports whether the boxes have a point in common.
func (b Box) Meets(o Box) bool {
	for _, p := range b.Parts() {
		for _, r := range o.Parts() {
			if p[0] <= r[2] && r[0] <= p[2] && p[1] <= r[3] && r[1] <= p[3] {
				return true
			}
		}
	}
	return false
}

// Span is a time, both ends in it.
type Span struct{ Start, End time.Time }

// Meets reports whether the spans have a moment in common.
func (s Span) Meets(o Span) bool { return !s.Start.After(o.End) && !o.Start.After(s.End) }

// Period is the whole of a year, a month, a day or a moment.
func Period(text string) (start, end time.Time, ok bool) {
	for _, form := range []struct {
		layout       string
		years, month int
		days         int
		plus         time.Duration
	}{
		{layout: time.RFC3339Nano}, {layout: "2006-01-02T15:04:05"}, {layout: "2006-01-02 15:04:05"}, {layout: "2006-01-02T15:04", plus: time.Minute},
		{layout: "2006-01-02", days: 1}, {layout: "2006-01", month: 1}, {layout: "2006", years: 1},
	} {
		t, err := time.Parse(form.layout, text)
		if err != nil {
			continue
		}
		t = t.UTC()
		after := t.AddDate(form.years, form.month, form.days).Add(form.plus)
		if after.Equal(t) {
			return t, t, true
		}
		return t, after.Add(-time.Millisecond), true
	}
	return start, end, false
}

// Compare orders spans by their beginning.
func (s Span) Compare(o Span) int { return cmp.Or(s.Start.Compare(o.Start), s.End.Compare(o.End)) }

// String is the query as people read it.
func (q Query) String() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+value)
		}
	}
	if q.Text != "" {
		parts = append(parts, strconv.Quote(q.Text))
	}
	if q.BBox != nil {
		add("bbox ", q.BBox.String())
	}
	add("from ", q.From)
	add("until ", q.Until)
	for _, tag := range q.Tags {
		add("tag ", tag)
	}
	add("where ", q.Where)
	add("collection ", q.Collection)
	if q.Alike != "" {
		name, size, _ := strings.Cut(q.Alike, "\x00")
		add("the name ", name+" and "+size+" bytes")
	}
	if q.Also != nil {
		add("", q.Also.String())
	}
	return strings.Join(parts, ", ")
}

// Narrowed is the query of the items that both queries find. Both have been checked. A place or time inside the other's
// stands for both. Others are kept side by side: an item may meet each of two boxes, and not what the boxes share.
func (q Query) Narrowed(by Query) (Query, error) {
	var also Query
	switch {
	case q.BBox == nil || by.BBox != nil && by.BBox.within(*q.BBox):
		q.BBox = by.BBox
	case by.BBox != nil && !q.BBox.within(*by.BBox):
		also.BBox = by.BBox
	}
	switch {
	case !q.Timed():
		q.From, q.Until = by.From, by.Until
	case by.Timed() && !q.Span.Meets(by.Span):
		also.From, also.Until = by.From, by.Until
	case by.Timed():
		if by.Span.Start.After(q.Span.Start) {
			q.From = by.From
		}
		if by.Span.End.Before(q.Span.End) {
			q.Until = by.Until
		}
	}
	if q.Collection != "" && by.Collection != q.Collection {
		also.Collection = by.Collection
	}
	q.Collection = cmp.Or(q.Collection, by.Collection)
	q.Text = strings.TrimSpace(q.Text + " " + by.Text)
	q.Tags = append(q.Tags[:len(q.Tags):len(q.Tags)], by.Tags...)
	q.Alike = cmp.Or(by.Alike, q.Alike)
	if by.Where != "" && q.Where != "" {
		q.Where = "(" + q.Where + ") and (" + by.Where + ")"
	}
	q.Where = cmp.Or(q.Where, by.Where)
	key, err := q.Check()
	if err == nil && !also.Empty() {
		q.Also = &also
		key, err = also.Check()
	}
	if err != nil {
		return q, fmt.Errorf("%s: %w", key, err)
	}
	return q, nil
}
