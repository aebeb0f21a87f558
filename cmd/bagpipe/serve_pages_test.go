package main

import (
	"bytes"
	"mime/multipart"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// post sends a form as a browser does.
func (s *site) post(path string, pairs ...string) answer {
	s.b.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return s.ask("POST", path, form.Encode(), "Content-Type", formType, "Origin", s.base, "Sec-Fetch-Site", "same-origin")
}

// rawTime is a time in a text that is not as people write it.
var rawTime = regexp.MustCompile(`>[^<]*\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// Every page is shown, links to pages that are there, and holds foreign text as text.
func TestServePages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ok("collection", "add", "reading-room", "--approval", "approve")
	hostile := `<script>alert(1)<b>"'&.txt`
	hostile = strings.ReplaceAll(hostile, "/", "")
	b.write("in/"+hostile, "<script>alert(2)</script>\n=1+1")
	b.ok("add", "--collection", "reading-room", filepath.Join(b.top, "in", hostile))
	b.drop("zip", "parent.zip")
	b.start("run", "--batch", "june").code(4)
	s := b.serve("--no-run")
	s.signIn()
	item := gjson.Get(b.ok("items", "--collection", "reading-room", "--json"), "0.item").String()
	if a := s.ask("GET", "/items/parent.zip", ""); !strings.Contains(a.body, "No step has made an inventory") || strings.Contains(a.body, "0 files") {
		t.Errorf("an item without an inventory: %d %s", a.code, a.body)
	}
	seen := map[string]bool{}
	todo := []string{"/", "/items", "/items?q=letters", "/items?facet=status:failed", "/items?list=letters.zip%0Anothing", "/items/" + item, "/items/" + item + "/files/" + url.PathEscape(hostile) + "?look=yes"}
	for len(todo) > 0 && len(seen) < 150 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		a := s.ask("GET", path, "")
		if a.code != 200 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
			continue
		}
		if strings.Contains(a.header.Get("Content-Type"), "text/html") {
			for _, bad := range []string{"<script>", "<b>\"", "ZgotmplZ", " style=", `="http`, "<no value>", "%3d"} {
				if strings.Contains(a.body, bad) {
					t.Errorf("%s holds %q", path, bad)
				}
			}
			if raw := rawTime.FindString(a.body); raw != "" && !strings.Contains(path, "/log") && !strings.Contains(path, "/files/") {
				t.Errorf("%s has a time as records have it: %s", path, raw)
			}
			for _, part := range strings.Split(a.body, `href="/`)[1:] {
				to, _, _ := strings.Cut(part, `"`)
				to, _, _ = strings.Cut("/"+strings.NewReplacer("&amp;", "&", "&#43;", "+").Replace(to), "#")
				todo = append(todo, to)
			}
		}
	}
	for _, page := range []string{"/mine", "/failures", "/queues", "/batches/june", "/workflows/accession", "/stats", "/inbox", "/engines", "/log", "/schedules", "/deliveries", "/catalogs", "/disposals", "/search"} {
		if !seen[page] {
			t.Errorf("no page leads to %s", page)
		}
	}
	list := s.ask("GET", "/items?list=letters.zip%0Anothing", "").body
	if !strings.Contains(list, "1 item ·") || !strings.Contains(list, "nothing</p>") {
		t.Errorf("the pasted list: %s", list)
	}
	if a := s.ask("GET", "/items.csv?facet=status:failed", ""); strings.Count(a.body, "\n") != 2 || !strings.Contains(a.body, "parent.zip") {
		t.Errorf("the table: %s", a.body)
	}
}

// People decide on a page; the history names them.
func TestServePagesActs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ok("collection", "add", "reading-room", "--approval", "approve")
	b.write("in/letter.txt", "Dear")
	b.ok("add", "--collection", "reading-room", b.top+"/in/letter.txt")
	b.drop("parent.zip")
	b.start("run").code(4)
	s := b.serve("--no-run")
	s.signIn()
	item := gjson.Get(b.ok("items", "--collection", "reading-room", "--json"), "0.item").String()
	if a := s.ask("GET", "/mine", ""); !strings.Contains(a.body, "approve: <a href") {
		t.Errorf("for people: %s", a.body)
	}
	acts := "/items/" + item + "/acts"
	helps := regexp.MustCompile(`(?s)<h2>Why it waits</h2>(.*)</section></div>`)
	look := func(want ...string) {
		t.Helper()
		part := helps.FindString(s.ask("GET", "/items/"+item, "").body)
		for _, w := range want {
			if strings.Count(part, w) != 1 {
				t.Errorf("what helps: not once %s in %s", w, part)
			}
		}
	}
	look(`name="step" value="approve"`, `<button name="act" value="complete">Complete approve</button>`)
	if a := s.post(acts, "act", "fail", "step", "approve", "back", "mine"); a.code != 400 || !strings.Contains(a.body, "needs a reason") {
		t.Errorf("a refusal without a reason: %+v", a)
	}
	if a := s.post(acts, "act", "complete", "step", "approve", "message", "read and agreed", "back", "mine"); a.code != 303 || a.header.Get("Location") != "/mine?did=complete" {
		t.Errorf("complete: %+v", a)
	}
	if a := s.post(acts, "act", "complete", "step", "approve", "back", "mine"); a.code != 409 || !strings.Contains(a.body, "completed already") {
		t.Errorf("complete again: %+v", a)
	}
	if a := s.post(acts, "act", "hold", "back", "//evil.example/x"); a.code != 303 || a.header.Get("Location") != "/?did=hold" {
		t.Errorf("hold: %+v", a)
	}
	if a := s.ask("POST", acts, "act=release", "Content-Type", formType, "Origin", "http://evil.example"); a.code != 403 {
		t.Errorf("a foreign page's act: %+v", a)
	}
	if log := b.git("log", "-1", "--grep=^Bagpipe-Step: approve", "--format=%an|%b"); !strings.HasPrefix(log, "Ada Keeper|") || !strings.Contains(log, "read and agreed") {
		t.Errorf("the history: %s", log)
	}
	look(`<button name="act" value="release">Release it</button>`)
	b.ok("release", item)
	if a := s.ask("GET", "/items/"+item, ""); !strings.Contains(a.body, `<button name="act" value="cancel">`) {
		t.Errorf("no act cancels: %s", a.body)
	}
	if a := s.post(acts, "act", "cancel", "message", "not ours", "back", "items/"+item); a.code != 303 || !strings.Contains(b.ok("show", item), "cancelled") {
		t.Errorf("cancel: %+v; %s", a, b.ok("show", item))
	}
	group := gjson.Get(b.ok("failures", "--json", "--workflow", "accession", "--step", "unpack"), "0.group").String()
	if a := s.post("/failures/"+group+"/retry", "back", "failures"); a.code != 303 {
		t.Errorf("retry: %+v", a)
	}
	if a := s.post("/steps/accession/unpack", "status", "disabled", "message", "mending", "back", "workflows/accession"); a.code != 303 {
		t.Errorf("disable: %+v", a)
	}
	if a := s.ask("GET", "/workflows/accession", ""); !strings.Contains(a.body, "Enable unpack") || !strings.Contains(a.body, "Disable validate") {
		t.Errorf("the workflow's page: %s", a.body)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	b.must(form.WriteField("collection", "reading-room"))
	for _, name := range []string{"one.txt", "../../two.txt"} {
		part, err := form.CreateFormFile("file", name)
		b.must(err)
		_, err = part.Write([]byte(name))
		b.must(err)
	}
	b.must(form.WriteField("name", "letters"))
	b.must(form.Close())
	if a := s.ask("POST", "/inbox", body.String(), "Content-Type", form.FormDataContentType(), "Sec-Fetch-Site", "same-origin"); a.code != 303 {
		t.Errorf("upload: %+v", a)
	}
	entries, err := os.ReadDir(filepath.Join(b.dir, "inbox/reading-room"))
	b.must(err)
	if len(entries) != 1 || !b.exists("ws/inbox/reading-room/letters/two.txt") {
		t.Errorf("the inbox holds %v", entries)
	}
	look("<code>bagpipe add --version-of ", `<button name="act" value="skip">Skip bag</button>`)
	s.program("viewer")
	if look("<code>bagpipe add --version-of ", " or <code>bagpipe step skip "); strings.Contains(s.ask("GET", "/items/"+item, "").body, `value="skip"`) {
		t.Error("a viewer sees an act")
	}
	if a := s.post(acts, "act", "release", "back", ""); a.code != 403 {
		t.Errorf("a viewer's act: %+v", a)
	}
}

// An admin lets people and programs in on a page; nobody else sees it.
func TestServeAccounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.serve("--no-run")
	s.signIn()
	if a := s.post("/users", "do", "add-user", "name", "zoe", "password", "short", "role", "operator"); a.code != 400 {
		t.Errorf("a short password: %+v", a)
	}
	if a := s.post("/users", "do", "add-user", "name", "zoe", "password", "correct horse battery", "full", "Zoé Reader", "role", "operator", "collection", ""); a.code != 303 {
		t.Errorf("a person: %+v", a)
	}
	added := s.post("/users", "do", "add-token", "name", "scanner", "role", "viewer", "expires", "90d")
	token := regexp.MustCompile(`bagpipe_\w+\.[\w-]+`).FindString(added.body)
	page := s.ask("GET", "/users", "").body
	if !strings.Contains(page, "Zoé Reader") || strings.Contains(page, token) || token == "" {
		t.Errorf("the page: %s", page)
	}
	s.token = token
	if a := s.ask("GET", "/api/v1/status", ""); a.code != 200 {
		t.Errorf("by the new token: %+v", a)
	}
	if a := s.ask("GET", "/users", ""); a.code != 403 {
		t.Errorf("a viewer sees the accounts: %+v", a)
	}
	if a := s.ask("POST", "/users", "do=remove-user&name=zoe", "Content-Type", formType); a.code != 403 {
		t.Errorf("a viewer removes an account: %+v", a)
	}
	s.token = ""
	if a := s.post("/users", "do", "remove-user", "name", "zoe"); a.code != 303 || strings.Contains(s.ask("GET", "/users", "").body, "zoe") {
		t.Errorf("removed: %+v", a)
	}
	if a := s.ask("GET", "/settings", ""); !strings.Contains(a.body, "<h2>bagpipe.yaml</h2>") || !strings.Contains(a.body, "by Ada Keeper") {
		t.Errorf("the settings: %s", a.body)
	}
}

// An act on many items is looked at first; what has changed since is refused by name.
func TestServeBulk(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 5)
	s := b.serve("--no-run")
	s.signIn()
	preview := s.post("/bulk", "all", "filter", "query", "workflow=trial", "act", "complete", "step", "look", "message", "all seen")
	at := preview.header.Get("Location")
	if preview.code != 303 || !strings.HasPrefix(at, "/bulk/") {
		t.Fatalf("preview: %+v", preview)
	}
	if a := s.ask("GET", at, ""); !strings.Contains(a.body, "Do it to 5 items") {
		t.Errorf("preview: %s", a.body)
	}
	b.ok("hold", "i3")
	if a := s.post(at); a.code != 303 {
		t.Errorf("confirm: %+v", a)
	}
	b.await("the end", func() bool { return strings.Contains(s.ask("GET", at, "").body, "done.") })
	if a := s.ask("GET", at, ""); !strings.Contains(a.body, "5 of 5 looked at, 1 refused") || !regexp.MustCompile(`>i3</a>: <b>item \w+: it has changed`).MatchString(a.body) {
		t.Errorf("the end: %s", a.body)
	}
	if n := gjson.Get(b.ok("items", "--workflow", "trial", "--status", "completed", "--json"), "#").Int(); n != 4 {
		t.Errorf("%d items are completed", n)
	}
	s.post(at)
	if n := strings.Count(b.ok("log", "--json"), "all seen"); n != 4 {
		t.Errorf("%d acts in the history", n)
	}
	if a := s.post("/bulk", "act", "hold"); a.code != 400 {
		t.Errorf("no items: %+v", a)
	}
}
