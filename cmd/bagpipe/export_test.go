package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/testdata/sample"

	"github.com/rogpeppe/go-internal/testscript"
)

// bothSchemas judge METS with the PREMIS in it: xmllint resolves the types of PREMIS objects by
// no other schema than the one it is given.
const bothSchemas = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:import namespace="http://www.loc.gov/METS/" schemaLocation="DIR/mets-1.12.1.xsd"/>
<xs:import namespace="http://www.loc.gov/premis/v3" schemaLocation="DIR/premis-3.0.xsd"/>
</xs:schema>`

// cmdSchema judges an XML file, PREMIS or METS, by the schemas of the fixtures. Without xmllint
// or the fixtures it is told.
func cmdSchema(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "schema")
	if _, err := os.Stat(schemas); err != nil {
		ts.Logf("not judged: %v", err)
		return
	}
	lint, err := exec.LookPath("xmllint")
	if err != nil {
		ts.Logf("not judged: %v", err)
		return
	}
	if out, err := judgeXML(lint, ts.MkAbs("both.xsd"), ts.MkAbs(args[0])); err != nil {
		ts.Fatalf("%s is not valid: %v\n%s", args[0], err, out)
	}
}

// judgeXML judges XML files by both schemas, which are put together in the file both.
func judgeXML(lint, both string, files ...string) (out []byte, err error) {
	if err := os.WriteFile(both, []byte(strings.ReplaceAll(bothSchemas, "DIR", schemas)), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(lint, append([]string{"--nonet", "--noout", "--schema", both}, files...)...)
	cmd.Env = append(os.Environ(), "XML_CATALOG_FILES="+filepath.Join(schemas, "catalog.xml"))
	return cmd.CombinedOutput()
}

// schemas is where the fixtures have them, seen from this package.
var schemas, _ = filepath.Abs("../../../shared/fixtures/schemas")

// isomorphic is a program of rdflib's that compares two graphs.
const isomorphic = `import sys, rdflib, rdflib.compare
a, b = (rdflib.Graph().parse(sys.argv[i], format=f) for i, f in ((1, "turtle"), (2, "json-ld")))
sys.exit(0 if len(a) > 0 and rdflib.compare.isomorphic(a, b) else "%d and %d statements, not the same" % (len(a), len(b)))
`

// withRDFlib is a Python that has rdflib: the first on the path may not be the one that the
// distribution's package is for.
func withRDFlib() (python string, err error) {
	for _, python = range []string{"python3", "/usr/bin/python3"} {
		var out []byte
		if out, err = exec.Command(python, "-c", "import rdflib").CombinedOutput(); err == nil {
			return python, nil
		}
		err = fmt.Errorf("%w: %s", err, out)
	}
	return "", err
}

// cmdIsomorphic has rdflib find a Turtle and a JSON-LD file to be the same graph. Without rdflib it
// is told.
func cmdIsomorphic(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "isomorphic")
	need(ts, args, 2, "isomorphic TURTLE JSONLD")
	python, err := withRDFlib()
	if err != nil {
		ts.Logf("not compared: %v", err)
		return
	}
	if out, err := exec.Command(python, "-c", isomorphic, ts.MkAbs(args[0]), ts.MkAbs(args[1])).CombinedOutput(); err != nil {
		ts.Fatalf("%v\n%s", err, out)
	}
}

// cmdRDF has rapper read a Turtle file. Without rapper it is told.
func cmdRDF(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "rdf")
	rapper, err := exec.LookPath("rapper")
	if err != nil {
		ts.Logf("not read: %v", err)
		return
	}
	out, err := exec.Command(rapper, "-i", "turtle", "-o", "ntriples", ts.MkAbs(args[0])).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "executionmetadata#StatusCompleted>") {
		ts.Fatalf("%s: %v\n%s", args[0], err, out)
	}
}

// Every PREMIS and METS of the demo's drops, of real ones and of hostile names is valid by the schemas,
// and their Turtle and JSON-LD are one graph.
func TestExportsOfFixtures(t *testing.T) {
	t.Parallel()
	fixtures := filepath.Dir(schemas)
	_, err := os.Stat(fixtures)
	lint, lerr := exec.LookPath("xmllint")
	if err := errors.Join(err, lerr); err != nil {
		t.Skip(err)
	}
	b := newBench(t)
	b.write("ws/bagpipe.yaml", `schema: 1
inbox: {collections: open, quiet: 10ms, rescan: 1s, duplicates: allow}
targets:
  vault: {kind: folder, layout: ocfl, path: ../vault}
defaults: {workflow: examined, targets: [store, vault]}
`)
	drops := filepath.Join(b.top, "drops")
	b.must(os.Mkdir(drops, 0o755))
	b.must(sample.MakeIn(drops, strings.Fields("folder zip tar.gz tar.zst bag bag.zip bag-wrong-digest parent.zip truncated.tar.gz file not-utf8")))
	hostile := filepath.Join(drops, "]]> & <label> \x01\u202e\ufffe 'x' \"y\"")
	b.must(os.MkdirAll(filepath.Join(hostile, "=d ]]>"), 0o755))
	for _, name := range []string{"]]>", "<!-- & -->", "\x1b[31m", "line\nend", "\ufffe\uffff", "\xff\xfe.txt", "e\u0301", "100%41", "=cmd|'calc'!A0", "=d ]]>/\u2028", strings.Repeat("\u00e9", 100), "a b#c?d"} {
		b.must(os.WriteFile(filepath.Join(hostile, name), []byte(name), 0o644))
	}
	made, err := filepath.Glob(filepath.Join(drops, "*"))
	b.must(err)
	for _, kind := range []string{"deposits", "gis", "bags-btr", "images", "pdf", "shapefile"} {
		found, err := filepath.Glob(filepath.Join(fixtures, kind, "[^LR]*")) // no licences
		b.must(err)
		made = append(made, found...)
	}
	if out, err := exec.Command("cp", append(append([]string{"-a"}, made...), filepath.Join(b.dir, "inbox/default"))...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.start("run", "-q").code(4) // the bad ones
	b.ok("fixity", "run", "-q")
	for _, format := range []string{"premis", "mets"} {
		b.ok("export", "--format", format, "--to", filepath.Join(b.top, format))
		files, err := filepath.Glob(filepath.Join(b.top, format, "*"))
		b.must(err)
		if len(files) < len(made)-5 {
			t.Errorf("%d files of %d drops", len(files), len(made))
		}
		if out, err := judgeXML(lint, filepath.Join(b.top, "both.xsd"), files...); err != nil {
			t.Errorf("%s: %v\n%s", format, err, out)
		}
	}
	python, err := withRDFlib()
	if err != nil {
		t.Skip(err)
	}
	for _, format := range []string{"turtle", "jsonld"} {
		b.write(format, b.ok("export", "--format", format))
	}
	if out, err := exec.Command(python, "-c", isomorphic, filepath.Join(b.top, "turtle"), filepath.Join(b.top, "jsonld")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
