package main

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"bagpipe/engine/web"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"
)

// contract is the OpenAPI document of a server, by which its answers are judged.
type contract struct {
	s        *site
	spec     gjson.Result
	compiler *jsonschema.Compiler
}

func (s *site) contract() *contract {
	s.b.t.Helper()
	text := s.ask("GET", "/api/v1/openapi.json", "").body
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	s.b.must(err)
	c := &contract{s: s, spec: gjson.Parse(text), compiler: jsonschema.NewCompiler()}
	s.b.must(c.compiler.AddResource("api.json", doc))
	return c
}

// judge wants an answer to be one that the document has for a path and a method.
func (c *contract) judge(template, method string, a answer) {
	t := c.s.b.t
	t.Helper()
	call := strings.ToUpper(method) + " " + template
	responses := c.spec.Get("paths." + gjsonKey(template) + "." + method + ".responses")
	code := strconv.Itoa(a.code)
	if !responses.Get(code).Exists() {
		code = "default"
	}
	if !responses.Get(code).Exists() {
		t.Errorf("%s: the document has no answer %d: %s", call, a.code, a.body)
		return
	}
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	content := responses.Get(code + ".content")
	if !content.Exists() && a.body == "" {
		return
	}
	if !content.Get(gjsonKey(kind)).Exists() {
		t.Errorf("%s: the document has no %s for %s: %s", call, kind, code, content)
		return
	}
	if !strings.HasSuffix(kind, "json") {
		return
	}
	at := "api.json#/paths/" + pointerKey(template) + "/" + method + "/responses/" + code + "/content/" + pointerKey(kind) + "/schema"
	schema, err := c.compiler.Compile(at)
	c.s.b.must(err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(a.body))
	c.s.b.must(err)
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s: %d is not as the document has it: %v\n%s", call, a.code, err, a.body)
	}
}

func gjsonKey(key string) string {
	return strings.NewReplacer(".", `\.`, "{", `\{`, "}", `\}`, "*", `\*`, "|", `\|`).Replace(key)
}

func pointerKey(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(key)
}

// What operators may not do, and what no program may.
var (
	forAdmins = map[string]bool{"/api/v1/steps/{workflow}/{step}": true, "/api/v1/schedules/{name}/acts": true}
	forPeople = map[string]bool{"/api/v1/disposals/{key}/acts": true}
)

// Of every call that the document has, each role gets what it may, and every answer is one
// that the document has.
func TestServeContract(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 2)
	b.drop("zip", "parent.zip", "file")
	b.start("run", "--batch", "june").code(4)
	s := b.serve("--no-run")
	s.program("admin")
	c := s.contract()
	item := gjson.Get(b.ok("items", "--workflow", "accession", "--status", "completed", "--json"), "0.item").String()
	shown := b.ok("show", item, "--json")
	names := strings.NewReplacer("{id}", item, "{name}", "accession", "{workflow}", "accession", "{step}", "unpack", "{path}", gjson.Get(shown, "files.0.path").String(),
		"{attempt}", "1-00000000", "{group}", "none", "{target}", "none", "{key}", "none")
	own := map[string]string{"/api/v1/batches/{name}": "/api/v1/batches/june", "/api/v1/events": "/api/v1/events?wait=1ms", "/api/v1/acts/{id}": "/api/v1/acts/none",
		"/api/v1/uploads/{id}": "/api/v1/uploads/none", "/api/v1/search": "/api/v1/search?q=file"}
	bodies := map[string]string{"/api/v1/items/{id}/acts": `{"act":"retry","step":"unpack"}`, "/api/v1/submissions/{key}/end": `{}`, "/api/v1/acts": `{"act":"hold","items":["nothing"]}`,
		"/api/v1/steps/{workflow}/{step}": `{"status":"enabled"}`, "/api/v1/failures/{group}/retry": `{}`, "/api/v1/batches/{name}/close": ``,
		"/api/v1/deliveries/{item}/{target}/acts": `{"act":"approve"}`, "/api/v1/disposals/{key}/acts": `{"act":"approve"}`, "/api/v1/schedules/{name}/acts": `{"act":"stop"}`,
		"/api/v1/queues/{name}/claims": `{}`, "/api/v1/queues/{workflow}/{step}/claims": `{}`, "/api/v1/attempts/{item}/{workflow}/{step}/{attempt}": `{}`,
		"/api/v1/attempts/{item}/{workflow}/{step}/{attempt}/end": `{}`}
	tokens := map[string]string{"": "bagpipe_0.none"}
	for _, role := range []string{"viewer", "operator", "admin"} {
		s.program(role)
		tokens[role] = s.token
	}
	b.ok("collection", "add", "elsewhere")
	for _, role := range []string{"viewer", "operator", "admin"} {
		tokens["confined "+role] = b.tokenOf(role, "elsewhere")
	}
	calls := 0
	s.refusesAnotherMethod(c)
	for template, methods := range c.spec.Get("paths").Map() {
		for method, op := range methods.Map() {
			path := names.Replace(template)
			if as := own[template]; as != "" {
				path = as
			}
			for role, token := range tokens {
				calls++
				s.token = token
				kind := "application/json"
				if method == "patch" {
					kind = "application/offset+octet-stream"
				}
				a := s.ask(strings.ToUpper(method), path, bodies[template], "Content-Type", kind, "Tus-Resumable", "1.0.0")
				if method != "head" {
					c.judge(template, method, a)
				}
				reads := method == "get"
				confined := strings.HasPrefix(role, "confined")
				refused := a.code == http.StatusForbidden || confined && a.code == http.StatusNotFound
				switch {
				case role == "":
					if a.code != http.StatusUnauthorized {
						t.Errorf("%s %s: a stranger gets %d", method, path, a.code)
					}
				case role == "viewer" && !reads && a.code != http.StatusForbidden,
					role == "operator" && (forAdmins[template] || forPeople[template]) != (a.code == http.StatusForbidden),
					role == "admin" && forPeople[template] != (a.code == http.StatusForbidden),
					role == "viewer" && reads && a.code == http.StatusForbidden,
					confined && strings.Contains(template, "items/{id}") && !refused,
					role == "confined viewer" && !reads && !refused,
					role == "confined operator" && forAdmins[template] && !refused,
					confined && forPeople[template] && !refused:
					t.Errorf("%s %s (%s): %s gets %d: %s", method, path, op.Get("summary"), role, a.code, a.body)
				}
				if confined && (strings.Contains(a.body, item) || strings.Contains(a.body, "june")) && !strings.Contains(a.body, "no item") {
					t.Errorf("%s %s: an account that is confined elsewhere is told: %s", method, path, a.body)
				}
			}
		}
	}
	if calls < 150 {
		t.Errorf("%d calls", calls)
	}
	s.program("admin")
	for _, pattern := range web.Calls() {
		method, path, _ := strings.Cut(strings.ReplaceAll(pattern, "...}", "}"), " ")
		if !c.spec.Get("paths." + gjsonKey(path) + "." + strings.ToLower(method)).Exists() {
			t.Errorf("the document lacks %s", pattern)
		}
	}
	if a := s.ask("GET", "/api/v1/nowhere", ""); a.code != 404 || a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("no such call: %+v", a)
	}
	if a := s.ask("POST", "/api/v1/items/"+item+"/acts", `{"act":7}`, "Content-Type", "application/json"); a.code != 422 || gjson.Get(a.body, "code").String() != "invalid" {
		t.Errorf("no such act: %+v", a)
	}
}

// refusesAnotherMethod wants each address to tell, of a method that it does not take, which it takes.
func (s *site) refusesAnotherMethod(c *contract) {
	t := s.b.t
	t.Helper()
	of := map[string]string{"/api/v1/status": "GET, HEAD", "/api/v1/acts": "POST", "/api/v1/acts/none": "GET, HEAD, DELETE", "/api/v1/steps/accession/unpack": "PUT",
		"/api/v1/attempts/i/w/s/a": "GET, HEAD, PUT", "/api/v1/attempts/i/w/s/a/made/a/b": "PUT", "/items": "GET, HEAD", "/bulk/none": "GET, HEAD, POST"}
	for path, allowed := range of {
		a := s.ask("PATCH", path, "")
		if a.code != http.StatusMethodNotAllowed || a.header.Get("Allow") != allowed {
			t.Errorf("PATCH %s: %d, allowed are %q, not %q", path, a.code, a.header.Get("Allow"), allowed)
		}
		if strings.HasPrefix(path, "/api/") && (gjson.Get(a.body, "code").String() != "method-not-allowed" || a.header.Get("Content-Type") != "application/problem+json") {
			t.Errorf("PATCH %s: %+v", path, a)
		}
	}
}

// What an account lacks, and how it is given that, stands in each refusal.
func TestServeTellsWhatAnAccountLacks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 1)
	b.ok("collection", "add", "elsewhere")
	s := b.serve("--no-run")
	viewer, operator, confined := b.tokenOf("viewer", ""), b.tokenOf("operator", ""), b.tokenOf("operator", "elsewhere")
	for _, c := range []struct{ token, method, path, body, lacks, helps string }{
		{viewer, "POST", "items/i0/acts", `{"act":"hold"}`, "the role operator, and this account has the role viewer", "bagpipe token add NAME --role operator"},
		{viewer, "POST", "queues/trial/look/claims", `{}`, "the role operator, and this account has the role viewer", "bagpipe token add NAME --role operator"},
		{operator, "POST", "items/i0/acts", `{"act":"migrate","workflow":"trial"}`, "the role admin, and this account has the role operator", "bagpipe token add NAME --role admin"},
		{operator, "PUT", "steps/trial/look", `{"status":"disabled"}`, "the role admin, and this account has the role operator", "bagpipe token add NAME --role admin"},
		{operator, "POST", "disposals/none/acts", `{"act":"approve"}`, "a person decides, who signs in and has the role operator", ""},
		{confined, "GET", "stats", "", "an account for all collections, and this one is confined to elsewhere", "bagpipe token add NAME --role operator"},
	} {
		s.token = c.token
		a := s.ask(c.method, "/api/v1/"+c.path, c.body, "Content-Type", "application/json")
		if a.code != 403 || !strings.Contains(gjson.Get(a.body, "detail").String(), c.lacks) || !strings.Contains(gjson.Get(a.body, "help").String(), c.helps) {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.code, a.body)
		}
	}
	s.token = viewer
	if a := s.announce(1, "collection", "default", "filename", "x"); a.code != 403 || !strings.Contains(a.body, "needs the role operator") {
		t.Errorf("an upload: %+v", a)
	}
	s.token = ""
	s.user("zoe", "viewer", "Zoé Reader")
	if a := s.post("/items/i0/acts", "act", "hold"); a.code != 403 || !strings.Contains(a.body, "needs the role operator, and this account has the role viewer") || !strings.Contains(a.body, "bagpipe user add NAME --role operator") {
		t.Errorf("on a page: %+v", a)
	}
	s = b.serve("--read-only")
	s.token = operator
	if a := s.ask("POST", "/api/v1/items/i0/acts", `{"act":"hold"}`, "Content-Type", "application/json"); a.code != 403 || !strings.Contains(gjson.Get(a.body, "help").String(), "without --read-only") {
		t.Errorf("where nothing can be changed: %+v", a)
	}
}

// confined gives a token for a collection that has no items.
func (b *bench) confined(collection string) (token string) {
	b.t.Helper()
	b.ok("collection", "add", collection)
	return b.token(collection)
}

// token gives a token for a collection.
func (b *bench) token(collection string) (token string) {
	b.t.Helper()
	return b.tokenOf("operator", collection)
}
