package steps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/bags"
	"bagpipe/bags/archive"
	"bagpipe/bags/finding"
	"bagpipe/bags/profile"
	"bagpipe/layout"
)

const reportOut = "report" // a folder in scratch

// validate checks content that is a bag, or has one as its only sub-folder,
// against RFC 8493 and the collection's BagIt profiles. The full report is published whatever it says.
func validate(ctx context.Context, c *Call) (Result, error) {
	dir, ok, err := findBag(c)
	if err != nil {
		return Result{}, failure(err)
	}
	if !ok {
		return noBag(c)
	}
	profiles, err := c.profiles()
	if err != nil {
		return Result{}, err
	}
	o := bags.ValidateOptions{Progress: c.progress(), Profiles: profiles}
	if o.Serialized, err = c.received(); err != nil {
		return Result{}, failure(err)
	}
	report, err := bags.Validate(ctx, dir, o)
	if err != nil {
		return Result{}, failure(err)
	}
	for _, f := range report.Findings {
		c.logf("%s", findingLine(f))
	}
	if err := writeReport(c, report); err != nil {
		return Result{}, failure(err)
	}
	result := Result{
		Message: fmt.Sprintf("valid BagIt %s: %s, %s, %s", report.Version, layout.Count(report.PayloadFiles, "file"),
			layout.Count(report.PayloadBytes, "byte"), layout.Count(int64(report.Warnings), "warning")),
		Outputs: []Output{{From: reportOut, To: layout.DerivedDir + "/validate"}},
	}
	if report.Valid {
		return result, nil
	}
	first, _ := report.FirstError()
	more := ""
	if n := report.Errors - 1; n > 0 {
		more = fmt.Sprintf(" (and %s in the step's log)", layout.Count(n, "further error"))
	}
	result.Message = ""
	return result, ContentFailure("bag is not valid: %s%s", findingText(first), more)
}

// noBag skips what is no bag; what lacks no more than the declaration of one was to be
// one, and its checksums would be compared by nobody.
func noBag(c *Call) (Result, error) {
	if info, err := os.Lstat(c.Content); err == nil && info.IsDir() {
		_, broken, err := bags.FindUndeclared(c.Content)
		if err != nil {
			return Result{}, failure(err)
		}
		if broken {
			return Result{}, ContentFailure("bag is not valid: %s", findingText(finding.Finding{Code: finding.NoDeclaration, Section: "2.1.1",
				Text: "it has no bagit.txt, though it has data/ and a manifest"}))
		}
	}
	return Result{Status: Skipped, Message: "not applicable: no bag (no bagit.txt)"}, nil
}

// profiles reads the collection's BagIt profiles. One that cannot be used is the
// operator's to mend.
func (c *Call) profiles() ([]*profile.Profile, error) {
	var all []*profile.Profile
	for _, file := range c.Profiles {
		p, err := profile.Load(file)
		if err != nil {
			return nil, SystemFailure("%w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

// received is the archive format the content was dropped in, none for a folder.
func (c *Call) received() (archive.Format, error) {
	if c.SourceKind != "archive" {
		return archive.None, nil
	}
	drop, err := theDrop(c)
	if err != nil {
		return archive.None, err
	}
	return archive.Sniff(drop)
}

func findBag(c *Call) (string, bool, error) {
	info, err := os.Lstat(c.Content)
	if err != nil || !info.IsDir() {
		return "", false, err
	}
	return bags.FindBag(c.Content)
}

// findingText names the file and the rule.
func findingText(f finding.Finding) string {
	text := string(f.Code) + ": " + f.Text
	switch {
	case f.Path != "" && f.Line > 0:
		text = fmt.Sprintf("%s, line %d: %s", f.Path, f.Line, text)
	case f.Path != "":
		text = f.Path + ": " + text
	}
	if f.Constraint != "" {
		return text + " (" + f.Constraint + " of profile " + f.Profile + ")"
	}
	if f.Section != "" {
		text += " (RFC 8493, " + f.Section + ")"
	}
	return text
}

func findingLine(f finding.Finding) string { return string(f.Severity) + ": " + findingText(f) }

func writeReport(c *Call, r bags.Report) error {
	data, err := layout.EncodeJSON(r)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.Scratch, reportOut)
	if err := errors.Join(c.MakeScratch(), os.Mkdir(dir, 0o755)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "report.json"), data, 0o644)
}

// quality checks the object as quality: in the rules says. It fails where a check does, unless
// its parameter fail is false.
func quality(ctx context.Context, c *Call) (Result, error) {
	fail, err := failParam(c.With)
	if err != nil {
		return Result{}, err
	}
	if c.Quality == nil {
		return Result{Status: Skipped, Message: "not applicable: no rule asks for a check"}, nil
	}
	checks, err := c.Quality(ctx)
	if err != nil {
		return Result{}, failure(err)
	}
	if len(checks) == 0 {
		return Result{Status: Skipped, Message: "not applicable: no rule asks for a check of this object"}, nil
	}
	counts, first := map[string]int{}, ""
	for _, check := range checks {
		if counts[check.Result]++; first == "" && check.Result == layout.QualityFail {
			first = "; " + check.ID + ": " + check.Text
		}
	}
	var said []string
	for _, result := range []string{layout.QualityPass, layout.QualityWarn, layout.QualityFail, layout.QualityNotReached} {
		if n := counts[result]; n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, result))
		}
	}
	res := Result{Checks: checks, Message: strings.Join(said, ", ") + first}
	if fail && first != "" {
		return res, ContentFailure("%s", res.Message)
	}
	return res, nil
}

func failParam(with map[string]any) (fail bool, err error) {
	switch v := with["fail"].(type) {
	case nil:
		return true, nil
	case bool:
		return v, nil
	}
	return false, wrongParam("fail", "want true or false, got %v", with["fail"])
}

// checkChecks refuses checks of levels and results that there are not, and a second one of a name, which
// would stand in the place of the first.
func checkChecks(checks []Check) ([]Check, error) {
	for i, c := range checks {
		if first := slices.IndexFunc(checks, func(one Check) bool { return one.ID == c.ID }); first < i {
			return nil, fmt.Errorf("checks[%d].id: %q is that of checks[%d], too; each check needs an id of its own", i, c.ID, first)
		}
		if _, err := layout.ParseName(c.ID); err != nil {
			return nil, fmt.Errorf("checks[%d].id: %w", i, err)
		}
		if !slices.Contains(layout.QualityLevels(), c.Level) {
			return nil, fmt.Errorf("checks[%d].level: %q: expected one of %s", i, c.Level, strings.Join(layout.QualityLevels(), ", "))
		}
		if !layout.IsQualityResult(c.Result) {
			return nil, fmt.Errorf("checks[%d].result: %q: expected pass, warn, fail, not-reached or not-applicable", i, c.Result)
		}
	}
	return checks, nil
}
