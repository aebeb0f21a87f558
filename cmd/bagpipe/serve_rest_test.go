package main

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

const druids = `schema: 1
name: druids
rules:
  - name: druid
    match: {kind: [file, folder], regexp: '^(?P<druid>[a-z]{2}\d{3}[a-z]{2}\d{4})'}
    identifiers: {druid: '${druid}'}
    workflow: googleScannedBookWF
`

// The first workflow of the seed, with people, or programs of their own, in the place of
// robots.
const googleScannedBook = `    milestone: inprocess
  - name: descriptive-metadata
    manual: true
  - name: google-convert
    manual: true
    requires: [register]
  - name: google-download
    manual: true
    requires: [google-convert]
    retries: 1
  - name: process-content
    manual: true
    requires: [descriptive-metadata, google-download]
  - name: start-accession
    manual: true
    requires: [process-content]
`

// books is a workspace with three books that begin the workflow, and a robot.
func books(b *bench) *site {
	b.workflow("googleScannedBookWF", googleScannedBook)
	b.workflow("etdSubmitWF", "  - name: submit\n    manual: true\n")
	b.write("ws/rules/druids.yaml", druids)
	b.ok("check")
	for _, druid := range []string{"tr346yr4493", "jc826sq7352", "mk913nh8271"} {
		b.write("in/"+druid, druid)
		b.ok("add", b.top+"/in/"+druid)
	}
	s := b.serve()
	s.program("operator")
	return s
}

// attr finds an attribute of the first element of that name whose name is as given, if one is.
func attr(t *testing.T, body, element, name, want string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(body))
	for {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("no <%s name=%q> in %s: %v", element, name, body, err)
		}
		at, ok := token.(xml.StartElement)
		if !ok || at.Name.Local != element {
			continue
		}
		found, value := name == "", "(none)"
		for _, a := range at.Attr {
			found = found || a.Name.Local == "name" && a.Value == name
			if a.Name.Local == want {
				value = a.Value
			}
		}
		if found {
			return value
		}
	}
}

const wf = "/workflow/dor/objects/druid:tr346yr4493/workflows/googleScannedBookWF"

// The service calls of the seed: Query, Initiate, Update, and a queue with a name.
func TestServeSeedCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := books(b)
	query := "/workflow/workflow_queue?waiting=dor:googleScannedBookWF:google-convert&completed=dor:googleScannedBookWF:register&limit=2"
	if a := s.ask("GET", query, ""); a.code != 200 || attr(t, a.body, "objects", "", "count") != "2" || !strings.HasPrefix(attr(t, a.body, "object", "", "id"), "druid:") {
		t.Errorf("Query: %+v", a)
	}
	if a := s.ask("GET", query+"&completed=dor:googleScannedBookWF:descriptive-metadata", ""); a.code != 200 || attr(t, a.body, "objects", "", "count") != "0" {
		t.Errorf("Query for two that are completed: %+v", a)
	}
	put := func(step, body string, code int, more ...string) answer {
		t.Helper()
		a := s.ask("PUT", wf+"/"+step+strings.Join(more, ""), body)
		if a.code != code {
			t.Errorf("PUT %s %s: %d, not %d: %s", step, body, a.code, code, a.body)
		}
		return a
	}
	// An update in progress, by a word of the robot's own, then its end.
	put("google-convert", `<process name="google-convert" status="IN PROCESS"/>`, 200)
	if a := s.ask("GET", wf+"/google-convert", ""); attr(t, a.body, "process", "google-convert", "status") != "IN PROCESS" {
		t.Errorf("in progress: %s", a.body)
	}
	put("google-convert", `<process name="google-convert" status="polling" note="3 of 9"/>`, 200)
	if a := put("google-convert", `<process name="google-convert" status="completed"/>`, 400, "?curent-status=waiting"); !strings.Contains(a.body, `"curent-status": this call takes current-status`) {
		t.Errorf("a misspelt parameter: %s", a.body)
	}
	if a := s.ask("GET", wf+"/google-convert", ""); attr(t, a.body, "process", "google-convert", "status") != "polling" || attr(t, a.body, "process", "google-convert", "note") != "3 of 9" {
		t.Errorf("in progress: %s", a.body)
	}
	s.holds("/items/tr346yr4493", "polling: 3 of 9")
	a := put("google-convert", `<process name="google-convert" status="completed" elapsed="2.294" lifecycle="converted"/>`, 200, "?current-status=polling")
	if steps := gjson.Get(a.body, "next_steps.#.process").String(); steps != `["descriptive-metadata","google-download"]` {
		t.Errorf("next steps %s", a.body)
	}
	if a := s.ask("GET", wf, ""); attr(t, a.body, "process", "google-convert", "elapsed") != "2.294" || attr(t, a.body, "process", "google-convert", "attempts") != "1" || attr(t, a.body, "process", "google-convert", "lifecycle") != "converted" ||
		attr(t, a.body, "process", "register", "lifecycle") != "inprocess" || attr(t, a.body, "process", "google-download", "lifecycle") != "" || attr(t, a.body, "workflow", "", "status") != "active" {
		t.Errorf("completed: %s", a.body)
	}
	if a := s.ask("GET", "/workflow/objects/druid:tr346yr4493/lifecycle", ""); !strings.Contains(a.body, ">converted</milestone>") || !strings.Contains(a.body, ">inprocess</milestone>") {
		t.Errorf("lifecycle: %s", a.body)
	}
	// An exception is tried again by policy, then stands with its message and text.
	failed := `<process name="google-download" status="exception" message="Item for barcode 0339518 not found" text="trace &lt;1&gt;"/>`
	put("google-download", failed, 200)
	if a := s.ask("GET", wf+"/google-download", ""); attr(t, a.body, "process", "google-download", "status") != "waiting" {
		t.Errorf("after the first exception: %s", a.body)
	}
	b.await("the second try", func() bool { return s.ask("PUT", wf+"/google-download", failed).code == 200 })
	if a := s.ask("GET", wf+"/google-download", ""); attr(t, a.body, "process", "google-download", "errorMessage") != "Item for barcode 0339518 not found" ||
		attr(t, a.body, "process", "google-download", "errorText") != "trace <1>" || attr(t, a.body, "process", "google-download", "attempts") != "2" {
		t.Errorf("after the second exception: %s", a.body)
	}
	s.holds("/items/tr346yr4493", "Item for barcode 0339518 not found", "<summary>At length</summary><pre>trace &lt;1&gt;</pre>")
	if a := s.ask("GET", "/workflow/workflow_queue?workflow=googleScannedBookWF&error=google-download", ""); attr(t, a.body, "object", "", "errorMessage") != "Item for barcode 0339518 not found" {
		t.Errorf("errors: %s", a.body)
	}
	put("google-download", `<process name="google-download" status="waiting"/>`, 200)
	put("google-download", `<process name="google-download" status="skipped" note="sent by post"/>`, 200)
	put("google-download", `<process name="google-download" status="waiting"/>`, 200) // reset

	put("google-download", `<process name="shelve" status="completed"/>`, 400)
	put("google-download", `<process name="google-download"`, 400)
	put("nowhere", `<process name="nowhere" status="completed"/>`, 404)
	put("google-download", `<process name="google-download" status="completed"/>`, 409, "?current-status=completed")
	if a := put("process-content", `<process name="process-content" status="completed"/>`, 409); !strings.Contains(a.body, "descriptive-metadata") {
		t.Errorf("the prerequisite is not named: %s", a.body)
	}
	// A step that another has claimed is not this program's to end.
	put("descriptive-metadata", `<process name="descriptive-metadata" status="cataloguing"/>`, 200)
	mine := s.token
	s.program("operator")
	other := s.token
	if put("descriptive-metadata", `<process name="descriptive-metadata" status="completed"/>`, 409); other == mine {
		t.Error("the two programs have one token")
	}
	s.token = mine
	put("descriptive-metadata", `<process name="descriptive-metadata" status="completed"/>`, 200)
	if log := b.ok("log", "tr346yr4493"); !strings.Contains(log, "descriptive-metadata: completed") || !strings.Contains(log, "[robot]") {
		t.Errorf("the history: %s", log)
	}

	if a := s.ask("GET", "/workflow/workflows/googleScannedBookWF/google-convert", ""); a.code != 200 || attr(t, a.body, "workflowQueue", "", "id") != "google-convert" || strings.Count(a.body, "<object ") != 2 {
		t.Errorf("the queue by its name: %+v", a)
	}
	start := "/workflow/dor/objects/druid:tr346yr4493/workflows/"
	for _, c := range []struct {
		method, path, body string
		code               int
	}{
		{"PUT", start + "etdSubmitWF", `<workflow id="etdSubmitWF"><process name="register"/><process name="archive"/></workflow>`, 409},
		{"PUT", start + "etdSubmitWF?lane-id=high", "", 409},
		{"PUT", start + "etdSubmitWF?version=2", "", 409},
		{"PUT", start + "etdSubmitWF?lane-id=default&version=1", `<workflow id="etdSubmitWF"><process name="register"/><process name="submit"/></workflow>`, 201},
		{"POST", start + "etdSubmitWF", "", 200},
		{"PUT", start + "nowhereWF", "", 400},
		{"PUT", "/workflow/dor/objects/druid:bb000bb0000/workflows/etdSubmitWF", "", 404},
		{"DELETE", start + "etdSubmitWF", "", 405},
		{"GET", "/workflow/workflow_queue", "", 400},
		{"GET", "/workflow/workflow_queue?waiting=a:b:c:d", "", 400},
		{"GET", "/workflow/workflow_queue?waiting=nowhereWF:x", "", 404},
		{"GET", "/workflow/workflow_queue?waiting=googleScannedBookWF:google-convert&lane=high", "", 400},
		{"GET", "/workflow/workflow_queue?error=googleScannedBookWF:google-convert&lane-id=high", "", 400},
		{"GET", "/workflow/workflows/googleScannedBookWF/google-convert?completed=x:y", "", 400},
		{"GET", start + "etdSubmitWF?x=1", "", 400},
	} {
		if a := s.ask(c.method, c.path, c.body); a.code != c.code || c.method == "DELETE" && !strings.Contains(a.body, "deactivate") {
			t.Errorf("%s %s: %d, not %d: %s", c.method, c.path, a.code, c.code, a.body)
		}
	}
}

// The routes of Stanford's server that its clients use besides.
func TestServeStanfordRoutes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := books(b)
	b.workflow("lent", "  - name: scan\n    external: true\n")
	b.write("in/box", "x")
	b.ok("add", "--workflow", "lent", b.top+"/in/box")
	b.await("the server knows of a step that is ready", func() bool {
		return strings.Contains(s.ask("GET", "/workflow/workflow_queue/all_queued?hours-ago=0", "").body, "<workflow ")
	})
	for path, want := range map[string]string{
		"workflow_queue/lane_ids?step=dor:googleScannedBookWF:google-convert":       `<lane id="normal"/>`,
		"workflow_queue?workflow=googleScannedBookWF&completed=register":            `<objects count="3">`,
		"workflow_queue?waiting=googleScannedBookWF:google-convert&lane-id=high":    `<objects count="0"/>`,
		"workflow_queue?waiting=googleScannedBookWF:google-convert&count-only=true": `<objects count="3"/>`,
		"workflow_queue?waiting=googleScannedBookWF:start-accession":                `<objects count="0"/>`,
		"workflow_queue/all_queued?hours-ago=0&limit=5":                             `<workflow name="lent" process="scan" druid="`,
		"workflow_queue/all_queued?hours-ago=1":                                     `<workflows/>`,
		"workflow_templates":                                                        `"googleScannedBookWF"`,
		"workflow_templates/etdSubmitWF":                                            `{"processes":[{"name":"register","label":"register"},{"name":"submit","label":"submit"}]}`,
		"objects/druid:tr346yr4493/workflows":                                       `<workflows objectId="druid:tr346yr4493">`,
		"objects/tr346yr4493/workflows/googleScannedBookWF/register":                `lifecycle="inprocess" laneId="normal"`,
		"queues/googleScannedBookWF?limit=1":                                        `<workflowQueue id="googleScannedBookWF">`,
	} {
		if a := s.ask("GET", "/workflow/"+path, ""); a.code != 200 || !strings.Contains(a.body, want) {
			t.Errorf("GET %s: %d, no %s in %s", path, a.code, want, a.body)
		}
	}
	if a := s.ask("POST", "/workflow/objects/druid:jc826sq7352/workflows/googleScannedBookWF/skip-all?note=by+hand", ""); a.code != 204 {
		t.Errorf("skip-all: %+v", a)
	}
	if a := s.ask("GET", "/workflow/objects/druid:jc826sq7352/workflows/googleScannedBookWF", ""); strings.Count(a.body, `status="skipped"`) != 5 || attr(t, a.body, "workflow", "", "status") != "inactive" {
		t.Errorf("after skip-all: %s", a.body)
	}
	s.program("viewer")
	if a := s.ask("POST", "/workflow/objects/druid:mk913nh8271/workflows/googleScannedBookWF/skip-all", ""); a.code != 403 || !strings.Contains(a.body, "needs the role operator, and this account has the role viewer") || !strings.Contains(a.body, "bagpipe token add NAME --role operator") {
		t.Errorf("a viewer skips all: %+v", a)
	}
	s.token = "bagpipe_wrong.x"
	if a := s.ask("GET", "/workflow/workflow_templates", ""); a.code != 401 || a.header.Get("WWW-Authenticate") == "" {
		t.Errorf("a wrong token: %+v", a)
	}
}
