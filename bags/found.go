package bags

import (
	"fmt"

	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// What the checks say of a bag, on its way into the report.

// mostFindings is how many errors, and how many warnings, are kept by their words; the
// rest are counted. What has more was made so, and memory has an end.
const mostFindings = 200_000

func (v *validator) find(s finding.Severity, code finding.Code, section, path string, line int, text string) {
	v.stop = v.stop || s == finding.Error && v.o.FailFast
	i := 0
	if s == finding.Warning {
		i = 1
	}
	if v.said[i]++; v.said[i] > mostFindings {
		return
	}
	v.report.Findings = append(v.report.Findings, finding.Finding{
		Code: code, Severity: s, Path: layout.EncodePath(path), Line: line, Section: section, Text: text,
	})
}

// sum adds what was only counted, and settles the report.
func (v *validator) sum() {
	r := &v.report
	for i, s := range []finding.Severity{finding.Error, finding.Warning} {
		if n := v.said[i] - mostFindings; n > 0 {
			r.Findings = append(r.Findings, finding.Finding{Code: finding.More, Severity: s, Text: fmt.Sprintf("and %d more of which nothing is said", n)})
		}
	}
	r.settle()
	r.Errors += max(0, v.said[0]-mostFindings-1) // the last finding stands for one
	r.Warnings += max(0, v.said[1]-mostFindings-1)
}

func (v *validator) fail(code finding.Code, section, path, text string) {
	v.find(finding.Error, code, section, path, 0, text)
}

func (v *validator) warn(code finding.Code, section, path, text string) {
	v.find(finding.Warning, code, section, path, 0, text)
}

// since1 is the severity of a rule that 1.0 brought.
func (v *validator) since1() finding.Severity {
	if v.version.Before(tagfile.V1) {
		return finding.Warning
	}
	return finding.Error
}

func (v *validator) enough() error {
	if v.stop {
		return errEnough
	}
	return nil
}
