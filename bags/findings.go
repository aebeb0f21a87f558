package bags

import (
	"fmt"

	"bagpipe/bags/finding"
	"bagpipe/layout"
)

// mostFindings bounds the errors, and the warnings, that are kept by their words; the
// rest are counted. A bag with more was made so, and memory has an end.
const mostFindings = 200_000

// findings collect what the checks say of a bag.
type findings struct {
	report   Report
	failFast bool
	stop     bool   // an error was found, and nothing more is to be
	said     [2]int // errors and warnings found, those that are only counted included
}

func (f *findings) find(s finding.Severity, code finding.Code, section, path string, line int, text string) {
	f.stop = f.stop || s == finding.Error && f.failFast
	i := 0
	if s == finding.Warning {
		i = 1
	}
	if f.said[i]++; f.said[i] > mostFindings {
		return
	}
	f.report.Findings = append(f.report.Findings, finding.Finding{
		Code: code, Severity: s, Path: layout.EncodePath(path), Line: line, Section: section, Text: text,
	})
}

// sum adds what was only counted, and settles the report.
func (f *findings) sum() {
	r := &f.report
	for i, s := range []finding.Severity{finding.Error, finding.Warning} {
		if n := f.said[i] - mostFindings; n > 0 {
			r.Findings = append(r.Findings, finding.Finding{Code: finding.More, Severity: s, Text: fmt.Sprintf("and %d more of which nothing is said", n)})
		}
	}
	r.settle()
	r.Errors += max(0, f.said[0]-mostFindings-1) // the last finding stands for one
	r.Warnings += max(0, f.said[1]-mostFindings-1)
}

func (f *findings) fail(code finding.Code, section, path, text string) {
	f.find(finding.Error, code, section, path, 0, text)
}

func (f *findings) warn(code finding.Code, section, path, text string) {
	f.find(finding.Warning, code, section, path, 0, text)
}

func (f *findings) enough() error {
	if f.stop {
		return errEnough
	}
	return nil
}
