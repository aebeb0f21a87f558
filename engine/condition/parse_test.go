package condition

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"
)

const whereDoc = `{"metadata": {"year": 1990, "text": "1991", "kind": "map", "tags": ["a", "b"], "none": null, "open": true,
  "embargo": "2026-12-01", "day": "2026-11-20T09:59:59Z"}, "a.b": 3}`

var t0 = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// What must stand somewhere for a condition to hold is of the comparisons joined by and, and of texts and numbers alone.
func TestMust(t *testing.T) {
	for text, want := range map[string]string{
		"type = map": "type=map ", "type = map and (label in (a, b) and x.y exists)": "type=map label=a|b ",
		"type = map or label = a": "", "not type = map": "", "type != map": "", "type ~ map": "", "type < map": "", "year = 1990": "year=1990 ", "open = true": "", "day > now-3d": "",
		"type in (map, 3)": "type=map|3 ", "type = map and (a = b or c = d)": "type=map ", "day = 2026-11-20": "",
	} {
		w, err := Parse(text)
		if err != nil {
			t.Fatal(text, err)
		}
		got := ""
		w.Must(func(path string, texts []string, numbers []float64) {
			for _, n := range numbers {
				texts = append(texts, fmt.Sprint(n))
			}
			got += path + "=" + strings.Join(texts, "|") + " "
		})
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	(*Where)(nil).Must(func(string, []string, []float64) { t.Error("no condition asks for something") })
}

func docValues(doc string) Values {
	return func(p string) gjson.Result { return gjson.Get(doc, p) }
}

func TestWhere(t *testing.T) {
	for text, want := range map[string]bool{
		"metadata.year = 1990":               true,
		"metadata.year == 1990":              true,
		"metadata.year != 1990":              false,
		"metadata.gone != 1990":              true,
		"metadata.gone = 1990":               false,
		"metadata.year >= 1990":              true,
		"metadata.year>1990":                 false,
		"metadata.year < 1990.5":             true,
		"metadata.text > 1990":               true,
		"metadata.day > 2000":                true,
		"metadata.day >= 2026":               true,
		"metadata.day < 2026":                false,
		"metadata.embargo < 2027":            true,
		"metadata.day = 2026":                false,
		"metadata.kind = map":                true,
		`metadata.kind = "map"`:              true,
		"metadata.kind ~ m*":                 true,
		"metadata.kind ~ 'x*'":               false,
		"metadata.kind in (letter, map)":     true,
		"not metadata.kind in (letter, map)": false,
		"metadata.tags = b":                  true,
		"metadata.tags.# = 2":                true,
		"metadata.none exists":               false,
		"metadata.none":                      false,
		"metadata.kind":                      true,
		"metadata.open = true":               true,
		"metadata.open != true":              false,
		`a\.b = 3`:                           true,
		"metadata.embargo < now":             false,
		"metadata.embargo > now":             true,
		"metadata.embargo < now+30d":         true,
		"metadata.embargo = 2026-12-01":      true,
		"metadata.day < now":                 true,
		"metadata.day < now-1h":              false,
		"metadata.kind = x or metadata.year = 1990 and metadata.kind = map":   true,
		"(metadata.kind = x or metadata.year = 1990) and metadata.kind = box": false,
		"not (metadata.kind = x or metadata.kind = map)":                      false,
	} {
		w, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if is, _ := w.Holds(docValues(whereDoc), t0); is != want {
			t.Errorf("%s: %v", text, is)
		}
	}
}

func TestWhereThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "column 1: expected a path",
		"metadata.year >":                 "column 16: expected a value",
		"metadata.year 1990":              "column 15: expected one of",
		"metadata.year = 1 metadata.b":    "column 19: expected and, or, or the end, not metadata.b",
		"(metadata.year = 1":              "column 19: expected ) here",
		"metadata.#(a==1) = 2":            "column 11: expected one of",
		"metadata.kind ~ [":               "expected a pattern",
		"metadata.kind = 'map":            "column 17: expected ' at the end",
		"metadata.kind in map":            "expected ( and values",
		"metadata.kind in (a b)":          "expected , or )",
		"metadata.day < now-3":            "expected a time such as now-30d",
		"metadata.day < now-xd":           "expected a time such as now-30d",
		strings.Repeat("(", 100) + "a":    "nested",
		strings.Repeat("not ", 100) + "a": "nested",
	} {
		_, err := Parse(text)
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) && !(want == "nested" && strings.Contains(err.Error(), "levels")) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
}

// TestWhereSaysWhenItChanges: between now and again the answer stays, whatever the
// condition.
func TestWhereSaysWhenItChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var doc strings.Builder
		doc.WriteString(`{"z": 1`)
		for i := range 3 {
			fmt.Fprintf(&doc, `, "d%d": %q`, i, layout.FormatTime(t0.Add(time.Duration(rapid.IntRange(-50, 50).Draw(t, "h"))*time.Hour)))
		}
		doc.WriteString("}")
		var draw func(depth int) string
		draw = func(depth int) string {
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case depth < 3 && what == 0:
				return "not (" + draw(depth+1) + ")"
			case depth < 3 && what == 1:
				return "(" + draw(depth+1) + " and " + draw(depth+1) + ")"
			case depth < 3 && what == 2:
				return "(" + draw(depth+1) + " or " + draw(depth+1) + ")"
			}
			return fmt.Sprintf("d%d %s now%+dh", rapid.IntRange(0, 2).Draw(t, "d"), rapid.SampledFrom([]string{"<", "<=", ">", ">=", "=", "!="}).Draw(t, "op"), rapid.IntRange(-20, 20).Draw(t, "shift"))
		}
		text := draw(0)
		w, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		values := docValues(doc.String())
		is, again := w.Holds(values, t0)
		for h := range 120 {
			for _, off := range []time.Duration{0, time.Minute} {
				at := t0.Add(time.Duration(h)*time.Hour + off)
				now, _ := w.Holds(values, at)
				if now != is && (again.IsZero() || at.Before(again.Add(-2*time.Millisecond))) {
					t.Fatalf("%s of %s is %v at first and %v at %v, before %v", text, doc.String(), is, now, at, again)
				}
			}
		}
	})
}

func FuzzWhere(f *testing.F) {
	f.Add("metadata.year >= 1990 and not (a in (1, 'x') or b ~ \"*\")")
	f.Add("a < now-30d")
	f.Fuzz(func(t *testing.T, text string) {
		if w, err := Parse(text); err == nil {
			w.Holds(docValues(whereDoc), t0)
		}
	})
}
