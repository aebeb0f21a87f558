package bags

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
)

// singleLabels should not be repeated (RFC 8493, 2.2.2); Payload-Oxum must not.
var singleLabels = []string{"Bagging-Date", "Bag-Size", "Bag-Group-Identifier", "Bag-Count"}

// metadata reads bag-info.txt, which until 0.95 was called package-info.txt.
func (v *validator) metadata(context.Context) error {
	name := tagfile.InfoFile
	if v.version.Before(tagfile.V096) && !v.has(tagfile.InfoFile) {
		name = tagfile.OldInfoFile
	}
	if !v.has(name) {
		return nil
	}
	var p tagfile.InfoParser
	if err := v.text(name, p.Line); err != nil {
		return err
	}
	p.Done()
	for _, problem := range p.Problems {
		severity := finding.Error
		if problem.Strict {
			severity = v.since1()
		}
		v.find(severity, finding.InfoSyntax, "2.2.2", name, problem.Line, problem.Text)
	}
	for _, number := range p.Empty { // no field, so no rule is broken; people write these files
		v.find(finding.Warning, finding.InfoSyntax, "2.2.2", name, number, "an empty line")
	}
	v.infoName, v.report.Info = name, p.Fields
	for _, label := range singleLabels {
		if countLabel(p.Fields, label) > 1 {
			v.warn(finding.InfoRepeated, "2.2.2", name, label+" should not be repeated")
		}
	}
	v.readOxum(name, p.Fields)
	return v.enough()
}

func countLabel(fields []tagfile.Field, label string) (n int) {
	for _, f := range fields {
		if tagfile.SameLabel(f.Label, label) {
			n++
		}
	}
	return n
}

func (v *validator) readOxum(name string, fields []tagfile.Field) {
	seen := 0
	for _, f := range fields {
		if !tagfile.SameLabel(f.Label, tagfile.LabelOxum) {
			continue
		}
		if seen++; seen == 2 {
			v.find(v.since1(), finding.OxumRepeated, "2.2.2", name, 0, "Payload-Oxum is there more than once")
		}
		o, ok := parseOxum(f.Value)
		if !ok {
			v.fail(finding.OxumSyntax, "2.2.2", name, "Payload-Oxum "+strconv.Quote(f.Value)+": want OCTETS.FILES")
			continue
		}
		v.oxums = append(v.oxums, o)
	}
}

func parseOxum(s string) (oxum, bool) {
	b, f, ok := strings.Cut(s, ".")
	bytes, err1 := strconv.ParseUint(b, 10, 63)
	files, err2 := strconv.ParseUint(f, 10, 63)
	return oxum{int64(bytes), int64(files)}, ok && err1 == nil && err2 == nil
}

// checkOxum compares Payload-Oxum with what is there. With files still to be
// fetched it cannot match, and the bag is incomplete anyway.
func (v *validator) checkOxum() {
	if v.unfetched() {
		return
	}
	for _, o := range v.oxums {
		if o.bytes != v.report.PayloadBytes || o.files != v.report.PayloadFiles {
			v.fail(finding.Oxum, "2.2.2", v.infoName, fmt.Sprintf("Payload-Oxum says %d.%d, the payload has %d.%d",
				o.bytes, o.files, v.report.PayloadBytes, v.report.PayloadFiles))
			return
		}
	}
}
