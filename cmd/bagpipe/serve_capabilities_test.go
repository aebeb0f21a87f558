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
	if a := s.ask("GET", "/api/v1/deliveries?to=portl", ""); a.code != 404 || !strings.Contains(a.body, "no target") {
		t.Errorf("a target that is none: %+v", a)
	}
	if a := s.ask("GET", "/api/v1/deliveries?to=portal&state=withdrawn", ""); strings.TrimSpace(a.body) != "[]" {
		t.Errorf("a target with nothing of that: %+v", a)
	}
	first, _, _ := strings.Cut(b.ok("delivery", "--json"), "\n")
	if a := s.ask("GET", "/api/v1/deliveries?limit=1", ""); gjson.Get(a.body, "#").Int() != 1 || gjson.Get(a.body, "0.@ugly").String() != gjson.Get(first, "@ugly").String() {
		t.Errorf("the first delivery is %s, the command's %s", a.body, first)
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

	s = b.serve("--read-only")
	s.signIn()
	s.holds("/schedules", "nightly</a>")
	s.holds("/deliveries?state=all", "3 deliveries")
	s.holds("/catalogs", "the 3 items of scans")
	s.holds("/disposals", "by bob@example.org: seen")
	s.holds("/search?q=new.txt", "1 item with", "new.txt</a>")
}

// The page of searches finds what the command finds, and whoever is confined what they reach.
func TestServeSearch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	settings := filepath.Join(b.dir, "bagpipe.yaml")
	data, err := os.ReadFile(settings)
	b.must(err)
	b.write("ws/bagpipe.yaml", strings.Replace(string(data), "\ninbox:", "\ninbox:\n  metadata: {}", 1))
	b.ok("collection", "add", "maps")
	b.write("ws/inbox/maps/elbe/Übersicht_1845.tif", "scan")
	b.write("ws/inbox/maps/elbe/metadata.json", `{"title": "Flood plain of the <Elbe>", "space": {"wgs84": {"bounds": [9.5, 53.3, 10.3, 53.6]}}, "time": {"start": "1845"}, "tags": {"business": ["flood"], "place": ["Hamburg"]}}`)
	b.write("ws/inbox/default/beijing/GF1.tif", "scan")
	b.write("ws/inbox/default/beijing/metadata.json", `{"title": "北京洪水影像", "time": {"start": "2013-07-21"}, "tags": {"business": ["flood"]}}`)
	b.ok("run", "-q")
	b.ok("search", "--tag", "flood", "--save", "floods")
	s := b.serve("--no-run")
	s.signIn()
	s.holds("/search", "What are you looking for?", `href="/search?saved=floods"`)
	s.holds("/search?q=ubersicht", "1 item with &#34;ubersicht&#34;", "elbe</a>", "Übersicht_1845.tif<br>")
	s.holds("/search?q=%E6%B4%AA%E6%B0%B4", "1 item with", "beijing</a>", "metadata.title")
	s.holds("/search?from=1800&until=1845&bbox=9,53,11,54", "1 item with bbox", "elbe</a>")
	s.holds("/search?where=metadata.time.start+%3C+1900", "1 item with", "elbe</a>", "Nothing is counted here")
	s.holds("/search?saved=floods", "2 items with tag flood", `href="/search?saved=floods&amp;tag=place%3AHamburg"`, `href="/search?collection=maps&amp;saved=floods"`, "saved: floods ×")
	s.holds("/search?saved=floods&tag=place:Hamburg", "1 item with", "elbe</a>", "tag: place:Hamburg ×")
	s.holds("/search?q=nothing", "Nothing has that.")
	for path, code := range map[string]int{"/search?from=soon": 400, "/search?bbox=1": 400, "/search?saved=none": 404, "/search?collection=none": 404, "/search?where=%28": 400} {
		if a := s.ask("GET", path, ""); a.code != code {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	s.program("viewer")
	found := func(path string) (labels []string) {
		for _, l := range gjson.Get(s.ask("GET", path, "").body, "#.label").Array() {
			labels = append(labels, l.String())
		}
		return labels
	}
	for path, told := range map[string]string{"/api/v1/search?q=flood+elbe": b.ok("search", "flood elbe", "--json"), "/api/v1/search?tag=place:Hamburg&limit=1": b.ok("search", "--tag", "place:Hamburg", "--json")} {
		if said := gjson.Get(s.ask("GET", path, "").body, "0.@ugly").String(); said == "" || said != gjson.Get(told, "@ugly").String() {
			t.Errorf("%s says %s, the command %s", path, said, told)
		}
	}
	if all := found("/api/v1/search?alike=elbe"); !slices.Equal(all, []string{"elbe"}) {
		t.Errorf("alike to elbe are %v", all)
	}
	for path, told := range map[string]string{"facets?tag=flood": b.ok("search", "--tag", "flood", "--facets", "--json"), "facets": b.ok("search", "--facets", "--json")} {
		said, lines := gjson.Get(s.ask("GET", "/api/v1/search/"+path, "").body, "@this"), strings.Split(strings.TrimSpace(told), "\n")
		if n := len(said.Array()); n != len(lines) || n == 0 || said.Get("0.@ugly").String() != lines[0] {
			t.Errorf("%s says %s, the command %s", path, said, told)
		}
	}
	if a := s.ask("GET", "/api/v1/search", ""); a.code != 400 {
		t.Errorf("nothing is asked: %+v", a)
	}
	s.token = b.token("maps")
	if all := found("/api/v1/search?tag=flood"); !slices.Equal(all, []string{"elbe"}) {
		t.Errorf("who is confined to maps finds %v", all)
	}
	if all := found("/api/v1/search?tag=flood&collection=default"); len(all) > 0 {
		t.Errorf("who is confined to maps finds %v elsewhere", all)
	}
	for path, code := range map[string]int{"search/facets": 403, "search?alike=beijing": 404} {
		if a := s.ask("GET", "/api/v1/"+path, ""); a.code != code {
			t.Errorf("who is confined to maps asks %s: %d %s", path, a.code, a.body)
		}
	}
	s.holds("/search?tag=flood", "1 item with tag flood", "Nothing is counted here")
	if a := s.ask("GET", "/api/v1/milestones?where=label+==+beijing", ""); gjson.Get(a.body, "items").String() != "0" {
		t.Errorf("milestones of items that no condition fits: %s", a.body)
	}
	if a := s.ask("GET", "/api/v1/milestones", ""); gjson.Get(a.body, "items").Int() != 1 || gjson.Get(a.body, "milestones.0.items").Int() != 1 {
		t.Errorf("who is confined to maps is told of the milestones of others: %s", a.body)
	}
}

// as is the bench of another person.
func (b *bench) as(name string) *bench {
	other := *b
	other.env = append(slices.Clone(b.env), "GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+strings.ToLower(name)+"@example.org")
	return &other
}
