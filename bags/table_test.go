package bags

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table in doc.go names tests; each must be there, and each requirement must
// have one.
func TestTheTableOfRequirementsNamesTests(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	tests, cases := testNames(t)
	_, table, ok := strings.Cut(string(doc), "hold this package to it\n")
	if !ok {
		t.Fatal("doc.go has no table")
	}
	requirement, rows := "", 0
	for line := range strings.Lines(table) {
		line, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "//\t")
		if !ok {
			continue
		}
		names, isTests := strings.CutPrefix(line, "    ")
		if !isTests {
			if requirement != "" {
				t.Errorf("no test for %q", requirement)
			}
			requirement = line
			continue
		}
		rows++
		requirement = ""
		for name := range strings.SplitSeq(names, "; ") {
			test, sub, _ := strings.Cut(name, "/")
			if !tests[test] || sub != "" && !cases[test+"/"+sub] {
				t.Errorf("doc.go names %q, which is no test", name)
			}
		}
	}
	if requirement != "" || rows < 30 {
		t.Errorf("%d rows, the last %q", rows, requirement)
	}
}

var (
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	ruleCase = regexp.MustCompile(`(?m)^\t\t\{"([^"]+)", (?:func\(b bag\)|\w)`)
)

// testFiles gives the test files of this package and those below it.
func testFiles(t *testing.T) (found []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(p, "_test.go") {
			found = append(found, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// testNames gives the tests of these packages, and the cases of those that are tables.
func testNames(t *testing.T) (tests, cases map[string]bool) {
	t.Helper()
	tests, cases = map[string]bool{}, map[string]bool{}
	for _, f := range testFiles(t) {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(data), -1) {
			tests[m[1]] = true
		}
		table := map[string]string{"rules_test.go": "TestRules", "odd_test.go": "TestOddBags"}[filepath.Base(f)]
		if table == "" {
			continue
		}
		for _, m := range ruleCase.FindAllStringSubmatch(string(data), -1) {
			cases[table+"/"+m[1]] = true
		}
	}
	return tests, cases
}
