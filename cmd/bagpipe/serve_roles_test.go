package main

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"bagpipe/engine/web"

	"github.com/tidwall/gjson"
)

// Who asks, in the order of the columns of mayPage: three accounts for all collections, and three for one that
// is not the items'.
var askers = []struct{ role, collection string }{
	{"viewer", ""}, {"operator", ""}, {"admin", ""}, {"viewer", "elsewhere"}, {"operator", "elsewhere"}, {"admin", "elsewhere"},
}

// What an account is answered: shown, or done and led on; forbidden; not there; an act that it may do, and that does
// not fit what it is about.
const (
	shown, led, missing, bad, no, conflict = 200, 303, 404, 400, 403, 409
)

// mayPage has a row for each page and for each call of WorkDo: where it is asked, with which form or body, and what each
// of the askers is answered.
var mayPage = map[string]struct {
	path, body string
	want       [6]int
}{
	"GET /{$}":                              {"/", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /items":                            {"/items", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /items.csv":                        {"/items.csv", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /items/{id}":                       {"/items/ITEM", "", [6]int{shown, shown, shown, missing, missing, missing}},
	"GET /items/{id}/files/{path...}":       {"/items/ITEM/files/FILE", "", [6]int{shown, shown, shown, missing, missing, missing}},
	"GET /items/{id}/log":                   {"/items/ITEM/log", "", [6]int{shown, shown, shown, missing, missing, missing}},
	"GET /items/{id}/log/{commit}":          {"/items/ITEM/log/COMMIT", "", [6]int{shown, shown, shown, missing, missing, missing}},
	"GET /items/{id}/logs/{step}/{attempt}": {"/items/ITEM/logs/say/ATTEMPT", "", [6]int{shown, shown, shown, missing, missing, missing}},
	"POST /items/{id}/acts":                 {"/items/ITEM/acts", "act=release", [6]int{no, led, conflict, missing, missing, missing}}, // the operator released it,
	"GET /mine":                             {"/mine", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /failures":                         {"/failures", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"POST /failures/{group}/retry":          {"/failures/GROUP/retry", "", [6]int{no, led, missing, no, missing, missing}}, // the operator's try took it
	"GET /queues":                           {"/queues", "", [6]int{shown, shown, shown, no, no, no}},
	"GET /queues/{name...}":                 {"/queues/accession", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /batches":                          {"/batches", "", [6]int{shown, shown, shown, no, no, no}},
	"GET /batches/{name}":                   {"/batches/june", "", [6]int{shown, shown, shown, no, no, no}},
	"POST /batches/{name}/close":            {"/batches/june/close", "", [6]int{no, led, led, no, no, no}},
	"GET /workflows":                        {"/workflows", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /workflows/{name}":                 {"/workflows/accession", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"POST /steps/{workflow}/{step}":         {"/steps/accession/unpack", "status=enabled", [6]int{no, no, led, no, no, no}},
	"GET /search":                           {"/search?q=letters", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /schedules":                        {"/schedules", "", [6]int{shown, shown, shown, no, no, no}},
	"POST /schedules/{name}/acts":           {"/schedules/nightly/acts", "act=stop", [6]int{no, no, led, no, no, no}},
	"GET /deliveries":                       {"/deliveries?state=all", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"POST /deliveries/{item}/{target}/acts": {"/deliveries/ITEM/portal/acts", "act=approve", [6]int{no, conflict, conflict, no, missing, missing}}, // nothing is to be delivered
	"GET /catalogs":                         {"/catalogs", "", [6]int{shown, shown, shown, no, no, no}},
	"GET /disposals":                        {"/disposals", "", [6]int{shown, shown, shown, no, no, no}},
	"POST /disposals/{key}/acts":            {"/disposals/none/acts", "act=approve", [6]int{no, no, no, no, no, no}}, // programs have no word in it
	"GET /stats":                            {"/stats", "", [6]int{shown, shown, shown, no, no, no}},
	"GET /inbox":                            {"/inbox", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"POST /inbox":                           {"/inbox", "", [6]int{no, bad, bad, no, bad, bad}}, // no form of files
	"POST /bulk":                            {"/bulk", "item=ITEM&act=release", [6]int{no, led, led, missing, missing, missing}},
	"GET /bulk/{id}":                        {"/bulk/none", "", [6]int{missing, missing, missing, missing, missing, missing}},
	"POST /bulk/{id}":                       {"/bulk/none", "", [6]int{missing, missing, missing, missing, missing, missing}},
	"POST /bulk/{id}/stop":                  {"/bulk/none/stop", "", [6]int{missing, missing, missing, missing, missing, missing}},
	"GET /engines":                          {"/engines", "", [6]int{shown, shown, shown, no, no, no}},
	"GET /settings":                         {"/settings", "", [6]int{shown, shown, shown, no, no, no}},
	"GET /users":                            {"/users", "", [6]int{no, no, shown, no, no, no}},
	"POST /users":                           {"/users", "do=remove-user&name=nobody", [6]int{no, no, missing, no, no, no}},
	"GET /log":                              {"/log", "", [6]int{shown, shown, shown, no, no, no}},

	"GET /workflow/workflow_queue":                                  {"/workflow/workflow_queue?workflow=accession&completed=register", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /workflow/workflow_queue/lane_ids":                         {"/workflow/workflow_queue/lane_ids?step=accession:unpack", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /workflow/workflow_queue/all_queued":                       {"/workflow/workflow_queue/all_queued?hours-ago=0&limit=9", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /workflow/workflows/{workflow}/{step}":                     {"/workflow/workflows/accession/unpack", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /workflow/queues/{name}":                                   {"/workflow/queues/accession", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /workflow/objects/{object}":                                {"/workflow/objects/ITEM", "", [6]int{shown, shown, shown, missing, missing, missing}},
	"GET /workflow/objects/{object}/workflows":                      {"/workflow/objects/ITEM/workflows", "", [6]int{shown, shown, shown, missing, missing, missing}},
	"GET /workflow/objects/{object}/workflows/{workflow}":           {"/workflow/objects/ITEM/workflows/trial", "", [6]int{shown, shown, shown, missing, missing, missing}},
	"GET /workflow/objects/{object}/workflows/{workflow}/{step}":    {"/workflow/objects/ITEM/workflows/trial/register", "", [6]int{shown, shown, shown, missing, missing, missing}},
	"GET /workflow/objects/{object}/lifecycle":                      {"/workflow/objects/ITEM/lifecycle", "", [6]int{shown, shown, shown, missing, missing, missing}},
	"PUT /workflow/objects/{object}/workflows/{workflow}":           {"/workflow/objects/ITEM/workflows/nowhereWF", "", [6]int{no, bad, bad, no, missing, missing}},
	"POST /workflow/objects/{object}/workflows/{workflow}":          {"/workflow/objects/ITEM/workflows/nowhereWF", "", [6]int{no, bad, bad, no, missing, missing}},
	"PUT /workflow/objects/{object}/workflows/{workflow}/{step}":    {"/workflow/objects/ITEM/workflows/trial/register", `<process name="register" status="completed"/>`, [6]int{no, conflict, conflict, no, missing, missing}},
	"POST /workflow/objects/{object}/workflows/{workflow}/skip-all": {"/workflow/objects/ITEM/workflows/nowhere/skip-all", "", [6]int{no, missing, missing, no, missing, missing}},
	"DELETE /workflow/objects/{object}/workflows/{workflow}":        {"/workflow/objects/ITEM/workflows/trial", "", [6]int{405, 405, 405, 405, 405, 405}},
	"GET /workflow/workflow_templates":                              {"/workflow/workflow_templates", "", [6]int{shown, shown, shown, shown, shown, shown}},
	"GET /workflow/workflow_templates/{workflow}":                   {"/workflow/workflow_templates/accession", "", [6]int{shown, shown, shown, shown, shown, shown}},
}

// streamed are pages without an end, which other tests read.
var streamed = []string{"GET /live"}

// Of every page and every call of WorkDo each role gets what it may, also where it is confined to a collection,
// and then nothing of other collections. A route without a row is none that the test lets pass.
func TestServeRolesOnEveryRoute(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.drop("zip", "parent.zip")
	b.write("ws/schedules/nightly.yaml", "schema: 1\nname: nightly\ntrigger: {cron: '30 2 * * *'}\ndo: {command: ['true']}\n")
	b.workflow("trial", "  - name: count\n    robot: inventory\n  - name: say\n    command: [sh, -c, 'echo seen >&2']\n")
	b.write("in/letters", "Dear")
	b.ok("add", "--workflow", "trial", b.top+"/in/letters")
	b.start("run", "--batch", "june").code(4)
	b.ok("collection", "add", "elsewhere")
	s := b.serve("--no-run")
	detail := b.ok("show", "letters", "--json")
	item := gjson.Get(detail, "manifest.item").String()
	attempt := gjson.Get(detail, `workflows.0.steps.#(step=="say").attempts.0.attempt`).String()
	b.ok("hold", item)
	newest, _, _ := strings.Cut(b.ok("log", item, "--json"), "\n")
	names := strings.NewReplacer("ITEM", item, "FILE", url.PathEscape(gjson.Get(detail, "files.0.path").String()), "COMMIT", gjson.Get(newest, "commit").String(),
		"GROUP", gjson.Get(b.ok("failures", "--json"), "0.group").String(), "ATTEMPT", attempt)
	var tokens []string
	for _, a := range askers {
		tokens = append(tokens, b.tokenOf(a.role, a.collection))
	}
	for i, a := range askers {
		s.token = tokens[i]
		s.headLeadsOn(a.role, a.collection)
	}
	routes := web.Routes()
	for route := range mayPage {
		if !slices.Contains(routes, route) {
			t.Errorf("%s has a row, and is no route", route)
		}
	}
	for _, route := range routes {
		row, ok := mayPage[route]
		if !ok {
			if !slices.Contains(streamed, route) {
				t.Errorf("%s has no row", route)
			}
			continue
		}
		method, _, _ := strings.Cut(route, " ")
		for i, a := range askers {
			s.token = tokens[i]
			got := s.ask(method, names.Replace(row.path), names.Replace(row.body), "Content-Type", formType)
			if got.code != row.want[i] {
				t.Errorf("%s: %s %s gets %d, not %d: %.300s", route, a.role, a.collection, got.code, row.want[i], got.body)
			}
			if a.collection != "" && got.code == shown && (strings.Contains(got.body, item) || strings.Contains(got.body, "letters") && !strings.Contains(route, "search") || strings.Contains(got.body, ">june<")) {
				t.Errorf("%s: who is confined elsewhere is told of other collections: %s", route, got.body)
			}
		}
		s.token = "bagpipe_0.none"
		if got := s.ask(method, names.Replace(row.path), names.Replace(row.body), "Content-Type", formType); got.code != 401 && got.code != led && got.code != no {
			t.Errorf("%s: a stranger gets %d", route, got.code)
		}
	}
}

// No link in the head of a page leads an account to where it may not go.
func (s *site) headLeadsOn(role, collection string) {
	s.b.t.Helper()
	_, head, _ := strings.Cut(s.ask("GET", "/", "").body, "<nav")
	head, _, _ = strings.Cut(head, "</nav>")
	links := strings.Split(head, `href="`)[1:]
	for _, link := range links {
		path, _, _ := strings.Cut(link, `"`)
		if a := s.ask("GET", path, ""); a.code != shown {
			s.b.t.Errorf("%s %s: the head leads to %s, which answers %d", role, collection, path, a.code)
		}
	}
	if len(links) < 8 {
		s.b.t.Errorf("%s %s: the head has %d links", role, collection, len(links))
	}
}

// tokenOf gives a token of a role; of a collection "": for all.
func (b *bench) tokenOf(role, collection string) (token string) {
	b.t.Helper()
	args := []string{"token", "add", "of-" + role, "--role", role}
	if collection != "" {
		args = append(args, "--collection", collection)
	}
	for line := range strings.Lines(b.ok(args...)) {
		if strings.HasPrefix(line, "bagpipe_") {
			token = strings.TrimSpace(line)
		}
	}
	return token
}
