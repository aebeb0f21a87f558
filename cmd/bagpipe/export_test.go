package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

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
	dir := schemas
	if _, err := os.Stat(dir); err != nil {
		ts.Logf("not judged: %v", err)
		return
	}
	lint, err := exec.LookPath("xmllint")
	if err != nil {
		ts.Logf("not judged: %v", err)
		return
	}
	both := ts.MkAbs("both.xsd")
	ts.Check(os.WriteFile(both, []byte(strings.ReplaceAll(bothSchemas, "DIR", dir)), 0o644))
	cmd := exec.Command(lint, "--nonet", "--noout", "--schema", both, ts.MkAbs(args[0]))
	cmd.Env = append(os.Environ(), "XML_CATALOG_FILES="+filepath.Join(dir, "catalog.xml"))
	if out, err := cmd.CombinedOutput(); err != nil {
		ts.Fatalf("%s is not valid: %v\n%s", args[0], err, out)
	}
}

// schemas is where the fixtures have them, seen from this package.
var schemas, _ = filepath.Abs("../../../shared/fixtures/schemas")

// isomorphic is a program of rdflib's that compares two graphs.
const isomorphic = `import sys, rdflib, rdflib.compare
a, b = (rdflib.Graph().parse(sys.argv[i], format=f) for i, f in ((1, "turtle"), (2, "json-ld")))
sys.exit(0 if len(a) > 0 and rdflib.compare.isomorphic(a, b) else "%d and %d statements, not the same" % (len(a), len(b)))
`

// cmdIsomorphic has rdflib find a Turtle and a JSON-LD file to be the same graph. Without rdflib it
// is told.
func cmdIsomorphic(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "isomorphic")
	need(ts, args, 2, "isomorphic TURTLE JSONLD")
	if out, err := exec.Command("python3", "-c", "import rdflib").CombinedOutput(); err != nil {
		ts.Logf("not compared: %v: %s", err, out)
		return
	}
	if out, err := exec.Command("python3", "-c", isomorphic, ts.MkAbs(args[0]), ts.MkAbs(args[1])).CombinedOutput(); err != nil {
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
