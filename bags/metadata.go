package bags

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// singleLabels should not be repeated (RFC 8493, 2.2.2); Payload-Oxum must not.
var singleLabels = []string{"Bagging-Date", "Bag-Size", "Bag-Group-Identifier", "Bag-Count"}

// metadata reads bag-info.txt, which until 0.95 was called package-info.txt.
func (v *validator) metadata(context.Context) error {
	name := infoFile
	if v.version.before(version{0, 96}) && !v.has(infoFile) {
		name = oldInfoFile
	}
	if !v.has(name) {
		return nil
	}
	var p infoParser
	if err := v.text(name, p.line); err != nil {
		return err
	}
	p.done()
	for _, problem := range p.problems {
		severity := SeverityError
		if problem.strict {
			severity = v.since1()
		}
		v.find(severity, CodeInfoSyntax, "2.2.2", name, problem.line, problem.text)
	}
	for _, number := range p.empty { // no field, so no rule is broken; people write these files
		v.find(SeverityWarning, CodeInfoSyntax, "2.2.2", name, number, "an empty line")
	}
	v.infoName, v.report.Info = name, p.fields
	for _, label := range singleLabels {
		if countLabel(p.fields, label) > 1 {
			v.warn(CodeInfoRepeated, "2.2.2", name, label+" should not be repeated")
		}
	}
	v.readOxum(name, p.fields)
	return v.enough()
}

func countLabel(fields []Field, label string) (n int) {
	for _, f := range fields {
		if sameLabel(f.Label, label) {
			n++
		}
	}
	return n
}

func (v *validator) readOxum(name string, fields []Field) {
	seen := 0
	for _, f := range fields {
		if !sameLabel(f.Label, LabelOxum) {
			continue
		}
		if seen++; seen == 2 {
			v.find(v.since1(), CodeOxumRepeated, "2.2.2", name, 0, "Payload-Oxum is there more than once")
		}
		o, ok := parseOxum(f.Value)
		if !ok {
			v.fail(CodeOxumSyntax, "2.2.2", name, "Payload-Oxum "+strconv.Quote(f.Value)+": want OCTETS.FILES")
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
			v.fail(CodeOxum, "2.2.2", v.infoName, fmt.Sprintf("Payload-Oxum says %d.%d, the payload has %d.%d",
				o.bytes, o.files, v.report.PayloadBytes, v.report.PayloadFiles))
			return
		}
	}
}

func (v *validator) unfetched() bool {
	for p := range v.holes {
		if !v.has(p) {
			return true
		}
	}
	return false
}
