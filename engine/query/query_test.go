package query

import (
	"slices"
	"strings"
	"testing"

	"github.com/paulmach/orb"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"Änne's R&D":     "anne s r d",
		"GF1_PMS1-E116":  "gf1 pms1 e116",
		"北京洪水2013":       "北 京 洪 水 2013",
		"Straße Żółw":    "strasse zolw",
		"ＡＢＣ ｶﾞ":         "abc ガ",
		"한국어 हिन्दी":     "한국어 हिन्दी",
		"Ærø ﬁn":         "aero fin",
		"\x00\xff\ue000": "",
	} {
		if got := strings.Join(Words(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if long := Words(strings.Repeat("é", 5000)); len(long) != 1 || len(long[0]) != maxWord {
		t.Errorf("a long word is compared by %d bytes", len(long[0]))
	}
}

func TestPhrases(t *testing.T) {
	holds := func(asked, text string) bool {
		return !slices.ContainsFunc(Phrases(asked), func(p Phrase) bool { return !p.In(Words(text)) })
	}
	for _, c := range []struct {
		asked, text string
		want        bool
	}{
		{"flood plain", "the plain was flooded", true},
		{`"flood plain"`, "plain flood", false},
		{`"flood plain"`, "on flood plains", true},
		{"洪水", "北京洪水影像", true},
		{"水洪", "北京洪水影像", false},
		{"lood", "flood", false},
	} {
		if got := holds(c.asked, c.text); got != c.want {
			t.Errorf("%s in %s: %v", c.asked, c.text, got)
		}
	}
}

func TestBoxes(t *testing.T) {
	fiji := Box{177, -20, -178, -12}
	for _, c := range []struct {
		b    Box
		want bool
	}{{Box{-180, -15, -179, -14}, true}, {Box{178, -15, 179, -14}, true}, {Box{0, -15, 10, -14}, false}, {Box{170, -15, -170, 0}, true}, {Box{-178, -12, 0, 0}, true}} {
		if fiji.Meets(c.b) != c.want || c.b.Meets(fiji) != c.want {
			t.Errorf("%v: %v", c.b, !c.want)
		}
	}
	for _, bad := range []string{"", "1,2,3", "1,2,3,4,5", "1,2,3,nan", "0,10,1,5", "0,0,181,1", "1,2,3,inf"} {
		if _, err := ParseBox(bad); err == nil {
			t.Errorf("%q is taken for a box", bad)
		}
	}
}

func TestPeriods(t *testing.T) {
	for text, want := range map[string]string{
		"2013": "2013-01-01T00:00:00Z 2013-12-31T23:59:59.999Z", "2014-06": "2014-06-01T00:00:00Z 2014-06-30T23:59:59.999Z",
		"2014-06-30T12:00:00+02:00": "2014-06-30T10:00:00Z 2014-06-30T10:00:00Z",
	} {
		const form = "2006-01-02T15:04:05.999Z"
		start, end, ok := Period(text)
		if got := start.Format(form) + " " + end.Format(form); !ok || got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestFactsOfAManifest(t *testing.T) {
	if _, ok := Bounds([]byte(`{"metadata": {"space": {"wgs84": {"bounds": [39, 116, 41, 117]}}}}`)); ok {
		t.Error("bounds beyond a pole are taken")
	}
	got := Tags([]byte(`{"metadata": {"tags": {"place": ["Beijing", 3], "business": "flood"}}}`))
	if want := []string{"business:flood", "place:3", "place:Beijing"}; !slices.Equal(got, want) {
		t.Errorf("tags %v, want %v", got, want)
	}
	if s, ok := Time([]byte(`{"metadata": {"time": {"start": 2013, "end": "2012"}}}`)); !ok || s.End.Year() != 2013 {
		t.Errorf("time %v %v", s, ok)
	}
}

// TestNarrowed: what was saved, narrowed, finds what both questions find, whatever each says of place and time.
func TestNarrowed(t *testing.T) {
	box := func(b Box) *Box { return &b }
	for _, c := range []struct {
		saved, by Query
		want      string
	}{
		{Query{From: "2000", Until: "2009"}, Query{From: "1990"}, "from 2000, until 2009"},
		{Query{From: "2000"}, Query{From: "2005-06", Until: "2010"}, "from 2005-06, until 2010"},
		{Query{Until: "2000"}, Query{From: "1990"}, "from 1990, until 2000"},
		{Query{From: "2000"}, Query{Until: "1990"}, "from 2000, until 1990"}, // of one that lasted from 1980 to 2010
		{Query{BBox: box(Box{0, 0, 10, 10})}, Query{BBox: box(Box{1, 1, 2, 2})}, "bbox 1,1,2,2"},
		{Query{BBox: box(Box{1, 1, 2, 2})}, Query{BBox: box(Box{0, 0, 10, 10})}, "bbox 1,1,2,2"},
		{Query{BBox: box(Box{170, 0, -170, 10})}, Query{BBox: box(Box{175, 1, -175, 9})}, "bbox 175,1,-175,9"},
		{Query{BBox: box(Box{-180, 0, 180, 10})}, Query{BBox: box(Box{175, 1, -175, 9})}, "bbox 175,1,-175,9"},
		{Query{BBox: box(Box{0, 0, 10, 10})}, Query{BBox: box(Box{5, 5, 20, 20})}, "bbox 0,0,10,10, bbox 5,5,20,20"},
		{Query{Collection: "a", Text: "x"}, Query{Collection: "b", Text: "y"}, `"x y", collection a, collection b`},
		{Query{Collection: "a"}, Query{Collection: "a", Tags: []string{"t"}}, "tag t, collection a"},
		{Query{Where: "type = a or type = b"}, Query{Where: "lane = c"}, "where (type = a or type = b) and (lane = c)"},
	} {
		for _, q := range []*Query{&c.saved, &c.by} {
			if key, err := q.Check(); err != nil {
				t.Fatal(key, err)
			}
		}
		got, err := c.saved.Narrowed(c.by)
		if err != nil || got.String() != c.want {
			t.Errorf("%s by %s: %s, %v, want %s", c.saved, c.by, got, err, c.want)
		}
	}
}

// A vertex without its two numbers lies nowhere, not at 0, 0; a height is left out.
func TestVerticesWithoutNumbers(t *testing.T) {
	for _, bad := range []string{`{"type": "Point", "coordinates": []}`, `{"type": "Point", "coordinates": [1]}`, `{"type": "Point", "coordinates": [1, null]}`,
		`{"type": "Point"}`, `{"type": "Point", "coordinates": null}`, `{"type": "LineString", "coordinates": [[1, 2], [3]]}`,
		`{"type": "Polygon", "coordinates": [[[0], [1, 0], [1, 1], [0]]]}`, `{"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [], [0, 0]]]]}`} {
		if g, err := ParseGeometry([]byte(bad)); err == nil {
			t.Errorf("%s is %v", bad, g)
		}
		if g := Footprint([]byte(`{"metadata": {"space": {"boundary": ` + bad + `}}}`)); g != nil {
			t.Errorf("%s lies at %v", bad, g)
		}
	}
	if g, err := ParseGeometry([]byte(`{"type": "Point", "coordinates": [1, 2, 300]}`)); err != nil || g != (orb.Point{1, 2}) {
		t.Errorf("%v, %v", g, err)
	}
}
