package condition

import (
	"errors"
	"strings"
	"testing"

	"bagpipe/layout"
)

const checkedDoc = `{"quality": {"result": "fail", "levels": {"total": "fail", "total.usable": "fail", "metadata.business.items": "warn"}, "counts": {"fail": 3, "not-reached": 0}}}`

// A level may be written with its dots, with and without backslashes.
func TestQualityIsAsked(t *testing.T) {
	for text, want := range map[string]bool{
		"quality":                                      true,
		"quality.levels exists":                        true,
		"quality.result = fail":                        true,
		"quality.result in (pass, 'warn')":             false,
		"quality.result ~ not-*":                       false,
		"quality.levels.total = fail":                  true,
		"quality.levels.total.usable = fail":           true,
		`quality.levels.total\.usable = fail`:          true,
		"quality.levels.total.usable != fail":          false,
		"quality.levels.metadata.business.items":       true,
		"quality.levels.metadata exists":               false,
		`quality.levels.metadata.business\.items=warn`: true,
		"quality.counts.fail > 2":                      true,
		"quality.counts.not-reached in (0, 1)":         true,
		"metadata.quality.reslt exists":                false,
	} {
		w, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if is, _ := w.Holds(docValues(checkedDoc), t0); is != want {
			t.Errorf("%s: %v", text, is)
		}
	}
	if c := (Keys{Path: "quality.levels.total.usable", In: []any{"fail"}}); !c.Holds([]byte(checkedDoc)) {
		t.Errorf("%s does not hold", c.String())
	}
	if err := CheckPath("quality.levels.total.usable"); err != nil || Lead("quality.levels.total.usable") != `quality.levels.total\.usable` {
		t.Error(err, Lead("quality.levels.total.usable"))
	}
}

func TestQualityThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"quality.reslt = fail":                      "column 1: path quality.reslt: expected quality.result, quality.levels. with one of total, total.usable, total.named, data,",
		"type = box and quality.level.total = fail": "column 16: path quality.level.total: expected quality.result",
		"quality.levels.total.usabel != fail":       "column 1: path quality.levels.total.usabel: expected",
		"quality.result.x exists":                   "column 1: path quality.result.x: expected",
		"quality.counts.failed > 2":                 "with one of not-applicable, pass, warn, not-reached, fail",
		"quality.levels. = fail":                    "column 1: expected a path",
		"quality.result = excellent":                `column 18: path quality.result: expected one of not-applicable, pass, warn, not-reached, fail, not "excellent"`,
		"quality.result in (pass, warning)":         `column 26: path quality.result: expected one of`,
		"quality.levels.total.usable = 'Fail'":      `not "Fail"`,
		"quality.result < warn":                     "column 18: path quality.result: expected = or != or in",
		"quality.result ~ x*":                       "expected one of not-applicable",
		"quality.counts.fail = many":                "column 23: path quality.counts.fail: expected a number",
		"quality != fail":                           "column 12: path quality: expected exists, or a path below it",
		"quality.levels = fail":                     "column 18: path quality.levels: expected exists",
	} {
		_, err := Parse(text)
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	y, err := layout.ParseYAML("w.yaml", []byte("when:\n  - path: x\n    in: [y]\n"))
	if err != nil {
		t.Fatal(err)
	}
	two := 2.0
	for _, c := range []Keys{{Path: "quality.result", In: []any{"pass", "warning"}}, {Path: "quality.result", Equals: true}, {Path: "quality.levels.totl", Equals: "fail"},
		{Path: "quality.counts.fail", Equals: "2"}, {Path: "quality.result", Above: &two}, {Path: "quality", Differs: "fail"}} {
		if err := c.CheckQuality(y, "$.when[0]"); err == nil || !strings.HasPrefix(err.Error(), "w.yaml:2:") {
			t.Errorf("%s: %v", c.String(), err)
		}
	}
	if err := (&Keys{Path: "quality.counts.fail", Above: &two}).CheckQuality(y, "$.when[0]"); err != nil {
		t.Error(err)
	}
}
