package main

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// busied gives a workspace something of each of the rooms that do one thing: a schedule that was
// fired well and one that was not, a catalog, and deliveries that came, wait for a person, or find
// their target away, once a run has done it.
func (b *bench) busied() {
	b.t.Helper()
	b.ok("collection", "add", "maps")
	settings := filepath.Join(b.dir, "bagpipe.yaml")
	data, err := os.ReadFile(settings)
	b.must(err)
	b.must(os.Mkdir(filepath.Join(b.top, "portal"), 0o777))
	b.write("ws/bagpipe.yaml", strings.Replace(string(data), "\ninbox:", "\ntargets:\n  portal: {kind: folder, path: ../portal}\n  away: {kind: folder, path: ../away}\ninbox:", 1))
	b.write("ws/rules/portal.yaml", "schema: 1\nname: portal\ndelivery:\n  - {to: portal, for: collection = maps, approve: label = old.txt}\n  - {to: away, for: label = new.txt}\n")
	b.write("ws/schedules/nightly.yaml", "schema: 1\nname: nightly\ndescription: looks at <all> bytes\ntrigger: {cron: '30 2 * * *'}\nzone: Europe/Berlin\ndo: {command: [sh, -c, 'echo all is well']}\n")
	b.write("ws/schedules/weekly.yaml", "schema: 1\nname: weekly\ntrigger: {every: 7d}\ndo: {command: [sh, -c, 'echo no tape; exit 7']}\n")
	b.write("maps/old.txt", "1845")
	b.write("maps/new.txt", "1999")
	b.ok("add", "--collection", "maps", filepath.Join(b.top, "maps/old.txt"), filepath.Join(b.top, "maps/new.txt"))
	b.write("scans/a/one.txt", "one")
	b.write("scans/two.txt", "two")
	b.ok("catalog", "add", "scans", filepath.Join(b.top, "scans"))
	b.ok("catalog", "scan")
	b.ok("schedule", "fire", "nightly")
	b.start("schedule", "fire", "weekly").code(4)
}

// holds wants each of some texts on a page.
func (s *site) holds(path string, texts ...string) {
	s.b.t.Helper()
	a := s.ask("GET", path, "")
	for _, text := range texts {
		if a.code != 200 || !strings.Contains(a.body, text) {
			s.b.t.Errorf("%s holds no %q: %d %s", path, text, a.code, a.body)
			return
		}
	}
}

// The pages of the rooms that do one thing each say what the commands say, and without anything
// what they are for.
func TestServeCapabilities(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.serve("--no-run")
	s.signIn()
	s.holds("/schedules", "No schedules", "schedules/NAME.yaml")
	s.holds("/deliveries", "Nothing is to be delivered", "rules/NAME.yaml")
	s.holds("/catalogs", "No catalogs", "catalogs/NAME.yaml")
	s.holds("/disposals", "Nothing is proposed", "retention:")
	b.busied()
	b.start("run", "-q").code(4)
	b.await("the schedules", func() bool { return strings.Contains(s.ask("GET", "/schedules", "").body, "nightly") })

	s.holds("/schedules", "cron 30 2 * * * <span class=\"quiet\">Europe/Berlin", "looks at &lt;all&gt; bytes", "command sh -c", "all is well", "every 7d", `<span class="status failed">failed</span>`, "exit status 7: no tape")
	if next := gjson.Get(b.ok("schedule", "show", "nightly", "--json"), "next").Time().UTC().Format("2006-01-02 15:04:05Z"); next[:4] == "0001" {
		t.Error("nightly is never due")
	} else {
		s.holds("/schedules", next)
	}
	b.ok("schedule", "stop", "weekly")
	b.await("the stop", func() bool {
		return strings.Contains(s.ask("GET", "/schedules", "").body, `<span class="status waiting">stopped</span>`)
	})
	b.write("ws/schedules/bad.yaml", "schema: 1\nname: bad\ntrigger: {cron: 61}\n")
	s.holds("/schedules", "schedules/bad.yaml:3:")
	b.must(os.Remove(filepath.Join(b.dir, "schedules/bad.yaml")))

	open := s.ask("GET", "/deliveries", "").body
	if strings.Contains(open, "delivered</span>") || !strings.Contains(open, "2 deliveries") {
		t.Errorf("the open deliveries: %s", open)
	}
	s.holds("/deliveries", "old.txt</a>", "once a person approves", "new.txt</a>", "away</td>", "the target&#39;s folder: ", `<td class="n">1</td>`)
	s.holds("/deliveries?state=all", "3 deliveries", "portal/1")
	s.holds("/deliveries?state=delivered&to=portal", "1 delivery<", "new.txt</a>")
	s.holds("/deliveries?state=withdrawn", "Nothing fits")
	if a := s.ask("GET", "/deliveries?state=gone", ""); a.code != 400 {
		t.Errorf("no such state: %+v", a)
	}
	s.holds("/catalogs", "scans</th>", filepath.Join(b.top, "scans")+"</td>", `<span class="status completed">here</span>`, `aria-label="the 2 items of scans">2</a>`, "ago</time>")
	where := url.Values{"where": {`source.place.catalog == "scans"`}}.Encode()
	s.holds("/catalogs", strings.ReplaceAll(where, "+", "&#43;"))
	s.holds("/items?"+where, "2 items", "one.txt</a>", "two.txt</a>")
	b.write("scans/three.txt", "three")
	b.ok("catalog", "scan")
	b.await("the third", func() bool { return strings.Contains(s.ask("GET", "/catalogs", "").body, "the 3 items of scans") })
	b.must(os.Rename(filepath.Join(b.top, "scans"), filepath.Join(b.top, "aside")))
	s.holds("/catalogs", `<span class="status failed">away</span> its root cannot be read`, "the 3 items of scans")

	b.ok("dispose", "propose", "new.txt", "-m", "a copy of <another>", "--authority", "Schedule 12.3")
	b.await("the proposal", func() bool { return strings.Contains(s.ask("GET", "/disposals", "").body, "Schedule 12.3") })
	s.holds("/disposals", "1 item: a copy of &lt;another&gt; <span class=\"status waiting\">proposed</span>", "by Ada Keeper &lt;ada@example.org&gt;", "1 of 1", "new.txt</a>", "0 of 2 approvals")
	key := gjson.Get(b.ok("dispose", "--json"), "0.key").String()
	b.as("Bob").ok("dispose", "approve", key, "-m", "seen")
	b.await("a word", func() bool { return strings.Contains(s.ask("GET", "/disposals", "").body, "1 of 2 approvals") })
	s.holds("/disposals", "by bob@example.org: seen")

	b.ok("delivery", "refuse", "old.txt", "--to", "portal", "-m", "not ours")
	b.await("the refusal", func() bool {
		return strings.Contains(s.ask("GET", "/deliveries?state=forbidden", "").body, "refused by Ada Keeper &lt;ada@example.org&gt;: not ours")
	})

	s.program("viewer")
	if said, told := gjson.Get(s.ask("GET", "/api/v1/schedules", "").body, "@ugly").String(), gjson.Get(b.ok("schedule", "--json"), "@ugly").String(); said != told {
		t.Errorf("the call says %s, the command %s", said, told)
	}
	if a := s.ask("GET", "/api/v1/catalogs", ""); gjson.Get(a.body, "0.items").Int() != 3 {
		t.Errorf("the catalogs: %+v", a)
	}
	if a := s.ask("GET", "/api/v1/disposals", ""); gjson.Get(a.body, "0.key").String() != key {
		t.Errorf("the proposals: %+v", a)
	}
	if n := gjson.Get(s.ask("GET", "/api/v1/deliveries?limit=2", "").body, "#").Int(); n != 2 {
		t.Errorf("%d deliveries of two", n)
	}
	s.token = b.confined("elsewhere")
	if a := s.ask("GET", "/api/v1/deliveries", ""); strings.TrimSpace(a.body) != "[]" {
		t.Errorf("who is confined elsewhere is told of deliveries: %s", a.body)
	}
	for _, page := range []string{"/schedules", "/catalogs", "/disposals"} {
		if a := s.ask("GET", page, ""); a.code != 403 {
			t.Errorf("%s tells who is confined elsewhere: %+v", page, a)
		}
	}
	s.holds("/deliveries?state=all", "Nothing fits")
}

// as is the bench of another person.
func (b *bench) as(name string) *bench {
	other := *b
	other.env = append(slices.Clone(b.env), "GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+strings.ToLower(name)+"@example.org")
	return &other
}
