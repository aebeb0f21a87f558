package state

import (
	"strings"
	"testing"
	"time"

	"bagpipe/layout"
)

// A commit makes a new version only with a workflow started at its time, of an item
// with nothing under way.
func TestNewVersion(t *testing.T) {
	since := t0.Add(time.Hour)
	with := func(status Status, step Status, names ...string) *Execution {
		x := &Execution{Item: testID(t), Workflows: map[string]*Workflow{}}
		for _, n := range names {
			x.Workflows[n] = &Workflow{Name: "trial", Created: t0, Status: status, Steps: map[layout.Name]*StepRecord{"ocr": {Status: step}}}
		}
		return x
	}
	started := func(at time.Time, names ...string) *Execution {
		x := with(Completed, Completed, "trial.1")
		for _, n := range names {
			x.Workflows[n] = &Workflow{Name: "trial", Created: at}
		}
		return x
	}
	was, is := layout.Manifest{Version: 1}, layout.Manifest{Version: 2, Since: since, Source: layout.Source{Drop: testID(t)}}
	for name, c := range map[string]struct {
		before, now *Execution
		is          layout.Manifest
		want        bool
	}{
		"done":            {with(Completed, Completed, "trial.1"), started(since, "trial.2"), is, true},
		"failed":          {with(Failed, Failed, "trial.1"), started(since, "trial.2"), is, true},
		"goes on":         {with(InProgress, Waiting, "trial.1"), started(since, "trial.2"), is, false},
		"runs still":      {with(Failed, InProgress, "trial.1"), started(since, "trial.2"), is, false},
		"nothing started": {with(Completed, Completed, "trial.1"), started(since), is, false},
		"two started":     {with(Completed, Completed, "trial.1"), started(since, "trial.2", "other.1"), is, false},
		"another time":    {with(Completed, Completed, "trial.1"), started(t0, "trial.2"), is, false},
		"two at once":     {with(Completed, Completed, "trial.1"), started(since, "trial.2"), layout.Manifest{Version: 3, Since: since, Source: is.Source}, false},
		"backwards":       {with(Completed, Completed, "trial.1"), started(since, "trial.2"), layout.Manifest{Since: since, Source: is.Source}, false},
		"without a drop":  {with(Completed, Completed, "trial.1"), started(since, "trial.2"), layout.Manifest{Version: 2, Since: since}, false},
		"without a time":  {with(Completed, Completed, "trial.1"), started(time.Time{}, "trial.2"), layout.Manifest{Version: 2, Source: is.Source}, false},
	} {
		if got := NewVersion(c.before, c.now, was, c.is); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAnObjectOfACatalogIsElsewhereOrTheNextVersion(t *testing.T) {
	at := func(catalog layout.Name, path, stamp string) layout.Source {
		return layout.Source{Name: path, Place: &layout.Place{Catalog: catalog, Path: path, Stamp: stamp}}
	}
	was := layout.Manifest{Version: 1, Source: at("maps", "a", "1")}
	since := t0.Add(time.Hour)
	before := &Execution{Item: testID(t), Workflows: map[string]*Workflow{"trial.1": {Name: "trial", Created: t0, Status: InProgress}}}
	now := func(intents map[layout.IntentKey]Intent) *Execution {
		return &Execution{Item: testID(t), Intents: intents, Workflows: map[string]*Workflow{"trial.1": {}, "trial.2": {Name: "trial", Created: since}}}
	}
	ended := now(map[layout.IntentKey]Intent{"k": {Kind: DeactivateIntent, Workflow: "trial.1"}})
	for name, c := range map[string]struct {
		now    *Execution
		source layout.Source
		want   bool
	}{
		"ended":           {ended, at("maps", "b/a", "2"), true},
		"goes on":         {now(nil), at("maps", "a", "2"), false},
		"another catalog": {ended, at("scans", "a", "2"), false},
		"out of the root": {ended, at("maps", "../a", "2"), false},
		"hidden in %":     {ended, at("maps", "%2e./a", "2"), false},
		"taken in":        {ended, layout.Source{}, false},
	} {
		if got := NewVersion(before, c.now, was, layout.Manifest{Version: 2, Since: since, Source: c.source}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}

	text := strings.Replace(strings.Replace(manifestText, "ITEM", string(testID(t)), 1), `"digest": "sha256:aa"`, `"digest": "sha256:aa", "place": {"catalog": "maps", "path": "a", "stamp": "sha256:01"}`, 1)
	for to, want := range map[string]string{
		`"catalog": "maps", "path": "b/a", "stamp": "sha256:02"`:  "",
		`"catalog": "maps", "path": "../a", "stamp": "sha256:02"`: "changed source",
		`"catalog": "scans", "path": "a", "stamp": "sha256:01"`:   "changed source",
	} {
		moved := strings.Replace(text, `"catalog": "maps", "path": "a", "stamp": "sha256:01"`, to, 1)
		if moved == text {
			t.Fatal("the manifest of the tests has another form")
		}
		mended, breaches := MendManifest([]byte(text), []byte(moved), false, false)
		if got := strings.Join(breaches, "; "); (want == "") != (got == "") || !strings.Contains(got, want) || want == "" && string(mended) != moved {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
	}
	told := strings.NewReplacer(`"by": "A"`, `"by": "A", "rule": "x/y"`, `"metadata": {}`, `"recognition": {"verdict": "yes", "rule": "x/y"}, "metadata": {}`)
	for was, want := range map[string]string{text: "", strings.Replace(text, `"place"`, `"lace"`, 1): "changed source.rule in manifest.json; changed recognition in manifest.json"} {
		now := told.Replace(was)
		mended, breaches := MendManifest([]byte(was), []byte(now), false, false)
		if got := strings.Join(breaches, "; "); got != want || want == "" && string(mended) != now {
			t.Errorf("recognised anew: %q, want %q", got, want)
		}
	}
}

func TestMendVersion(t *testing.T) {
	before := strings.Replace(manifestText, "ITEM", string(testID(t)), 1)
	next := strings.NewReplacer(`"version": 1`, `"version": 2, "since": "2026-11-20T11:00:00Z"`, `"digest": "sha256:aa"`, `"digest": "sha256:ff"`).Replace(before)
	if mended, breaches := MendVersion([]byte(before), []byte(next)); len(breaches) > 0 || string(mended) != next {
		t.Errorf("refused: %q", breaches)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"lane": "normal"`, `"lane": "../up"`, "changed lane"},
		{`"label": "a"`, `"label": "a", "parent": {"item": "` + string(testID(t)) + `", "workflow": "w.1", "step": "s", "name": "n", "generation": 1}`, "changed parent"},
		{string(testID(t)), string(layout.ItemIDOf(7)), "changed item"},
	} {
		mended, breaches := MendVersion([]byte(before), []byte(strings.Replace(next, c.old, c.new, 1)))
		if !strings.Contains(strings.Join(breaches, "; "), c.want) {
			t.Errorf("%s: %q, want %q", c.new, breaches, c.want)
		}
		m, err := layout.DecodeManifest(mended)
		if err != nil || m.Item != testID(t) || m.Version != 2 || m.Parent != nil || m.Lane != "normal" {
			t.Errorf("%s: %+v, %v", c.new, m, err)
		}
	}
}
