package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A run that delivers, and a republication, are killed after each move of the branch. What comes
// after brings the targets to what the rules say: nothing is sent again that came there, nothing
// is taken back that is wanted, nothing is left over.
func TestKilledDelivery(t *testing.T) {
	t.Parallel()
	base := deliveryBase(t)
	base.write("ws/rules/portal.yaml", deliveryRules("metadata.year > 1900"))
	base.changeAll()
	for n := 0; ; n += soak(3, 1) {
		b := base.copied(t, fmt.Sprintf("run-%d", n))
		p := b.start("run", "-q")
		killed := b.awaitMoves(p, n)
		killed = p.kill() && killed
		b.ok("run", "-q")
		b.delivered("1920", "1999")
		if !killed {
			break
		}
	}
	whole := base.copied(t, "whole")
	whole.ok("run", "-q")
	whole.delivered("1920", "1999")
	whole.write("ws/rules/portal.yaml", deliveryRules("metadata.year < 1850 or metadata.year > 1950"))
	whole.ok("status") // commits the rules
	for n := 0; ; n += soak(2, 1) {
		b := whole.copied(t, fmt.Sprintf("republish-%d", n))
		p := b.start("delivery", "republish")
		killed := b.awaitMoves(p, n)
		<-time.After(time.Duration(n%3) * 300 * time.Microsecond)
		killed = p.kill() && killed
		if killed && n > 0 { // it was begun
			b.ok("run", "-q") // goes on with it
		} else {
			b.ok("delivery", "republish")
		}
		b.ok("run", "-q")
		b.delivered("1845", "1999")
		if removed, _ := os.ReadFile(filepath.Join(b.dir, "removed")); strings.Contains(string(removed), "1999") {
			t.Errorf("killed at %d: what is wanted was taken back: %s", n, removed)
		}
		if !killed {
			break
		}
	}
}

// A run that delivers, and a republication, are killed at each call that changes something on the disk, in turn. What
// comes after brings targets of each form to what the rules say, and what is wanted all the while stays as it came there.
func TestDeliveryKilledAtEachCall(t *testing.T) {
	t.Parallel()
	base := deliveryBase(t)
	base.write("ws/bagpipe.yaml", "schema: 1\ninbox: {collections: open, quiet: 10ms, rescan: 1s, metadata: {}}\ndefaults: {workflow: plain}\n"+
		"targets:\n  portal: {kind: folder, path: ../portal}\n  bags: {kind: folder, path: ../bags, format: bag}\n  cards: {kind: folder, path: ../cards, format: text, template: card.tmpl}\n")
	base.write("ws/card.tmpl", "the year {{.metadata.year}}")
	rules := func(which string) {
		base.write("ws/rules/portal.yaml", strings.ReplaceAll(deliveryRules(which), "{to: tool,", "{to: bags,")+"  - {to: cards, for: '"+which+"'}\n")
		base.ok("status") // commits the rules
	}
	for _, dir := range []string{"bags", "cards"} {
		base.must(os.Mkdir(filepath.Join(base.top, dir), 0o777))
	}
	rules("metadata.year > 1900")
	base.changeAll()
	eachCall(t, base, func(b *bench) {
		b.ok("run", "-q")
		b.shelved("1920", "1999")
	}, "run", "-q")
	base.ok("run", "-q")
	rules("metadata.year < 1850 or metadata.year > 1950")
	for at := range base.shelved("1920", "1999")["1999"] { // what is sent again has another time
		base.must(os.Chtimes(base.top+at, time.Unix(1e9, 0), time.Unix(1e9, 0)))
	}
	stays := base.shelves()["1999"]
	eachCall(t, base, func(b *bench) {
		if now := b.shelves()["1999"]; !maps.Equal(now, stays) {
			t.Errorf("what is wanted was at %v, and is at %v", stays, now)
		}
		b.ok("run", "-q") // goes on with what was begun
		b.ok("delivery", "republish")
		b.ok("run", "-q")
		if now := b.shelved("1845", "1999")["1999"]; !maps.Equal(now, stays) {
			t.Errorf("what is wanted was at %v, and is at %v", stays, now)
		}
		b.git("fsck", "--strict", "--no-dangling")
	}, "delivery", "republish")
}

// An item is taken back from a folder and killed at each name that goes: it stands there whole or not at all, and the next
// run clears the rest away.
func TestKilledWithdrawalLeavesNoHalf(t *testing.T) {
	t.Parallel()
	base := deliveryBase(t)
	base.write("ws/rules/portal.yaml", "schema: 1\nname: portal\ndelivery:\n  - {to: portal, for: label = many}\n")
	const files = 6
	for n := range files {
		base.write(fmt.Sprintf("ws/inbox/default/many/%d.txt", n), "x")
	}
	base.ok("run", "-q")
	holds := func(b *bench) (whole, all []string) {
		all, err := filepath.Glob(filepath.Join(b.top, "portal/[^.]*"))
		b.must(err)
		for _, at := range all {
			if names, err := os.ReadDir(at); err == nil && len(names) == files {
				whole = append(whole, at)
			}
		}
		return whole, all
	}
	if whole, _ := holds(base); len(whole) != 1 {
		t.Fatalf("%d items came to the portal", len(whole))
	}
	for n := 1; ; n += soak(2, 1) {
		b := base.copied(t, fmt.Sprintf("killed-%d", n))
		killed := b.killedAt("unlink,unlinkat", n, "delivery", "withdraw", "many", "--to", "portal")
		if whole, all := holds(b); len(whole) != len(all) {
			t.Errorf("killed at name %d: %v stand there, and of these %v are whole", n, all, whole)
		}
		b.ok("run", "-q")
		b.ok("delivery", "withdraw", "--all", "--to", "portal")
		left, err := os.ReadDir(filepath.Join(b.top, "portal"))
		if b.must(err); len(left) != 1 { // .bagpipe
			t.Errorf("killed at name %d: %v are left", n, left)
		}
		b.must(os.RemoveAll(b.top))
		if !killed {
			return
		}
	}
}

// shelved checks that each of three targets holds the items of these years, and nothing else.
func (b *bench) shelved(years ...string) map[string]map[string]time.Time {
	b.t.Helper()
	all := b.shelves()
	if have := slices.Sorted(maps.Keys(all)); !slices.Equal(have, years) {
		b.t.Errorf("the targets hold %v, want %v\n%s", have, years, b.ok("delivery"))
	}
	for year, at := range all {
		if len(at) != 3 {
			b.t.Errorf("%s is at %v\n%s", year, at, b.ok("delivery"))
		}
	}
	return all
}

// shelves gives the files of targets that have a year's sheet or card, by the years, with their times.
func (b *bench) shelves() map[string]map[string]time.Time {
	b.t.Helper()
	all := map[string]map[string]time.Time{}
	for _, target := range []string{"portal", "bags", "cards"} {
		b.must(filepath.WalkDir(filepath.Join(b.top, target), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || target != "cards" && d.Name() != "sheet.txt" || strings.Contains(p, "/.") {
				return err
			}
			data, err := os.ReadFile(p)
			b.must(err)
			info, err := d.Info()
			b.must(err)
			year := string(data[max(0, len(data)-4):])
			if all[year] == nil {
				all[year] = map[string]time.Time{}
			}
			all[year][strings.TrimPrefix(p, b.top)] = info.ModTime()
			return nil
		}))
	}
	return all
}

func deliveryRules(which string) string {
	return "schema: 1\nname: portal\ndelivery:\n  - {to: portal, for: '" + which + "'}\n  - {to: tool, for: '" + which + "'}\n"
}

// deliveryBase is a workspace with three items of three years, and two targets.
func deliveryBase(t *testing.T) *bench {
	b := newBench(t)
	b.write("ws/bagpipe.yaml", "schema: 1\ninbox: {collections: open, quiet: 10ms, rescan: 1s, metadata: {}}\ndefaults: {workflow: plain}\n"+
		"targets:\n  portal: {kind: folder, path: ../portal}\n  tool: {kind: command, command: [sh, tool.sh]}\n")
	b.write("ws/workflows/plain.yaml", "schema: 1\nname: plain\nsteps:\n  - name: register\n  - {name: inventory, robot: inventory}\n")
	// The tool keeps a file for each item, by its key, and notes what is put again or removed.
	b.write("ws/tool.sh", `at="tool/${BAGPIPE_KEY%%-*}"
case "$1" in
put) [ "$(cat "$at" 2>/dev/null)" = "$BAGPIPE_KEY" ] && echo "$BAGPIPE_KEY" >>again; echo "$BAGPIPE_KEY" >"$at";;
ask) [ "$(cat "$at" 2>/dev/null)" = "$BAGPIPE_KEY" ] || exit 77;;
remove) [ -e "$at" ] && bagpipe items --columns item,metadata.year --csv | grep "^${BAGPIPE_KEY%%-*}" >>removed; rm -f "$at";;
esac
`)
	b.must(os.MkdirAll(filepath.Join(b.top, "portal"), 0o777))
	b.must(os.MkdirAll(filepath.Join(b.dir, "tool"), 0o777))
	for _, year := range []string{"1845", "1920", "1999"} {
		b.write("ws/inbox/default/map-"+year+"/sheet.txt", year)
		b.write("ws/inbox/default/map-"+year+"/metadata.json", `{"year": `+year+`}`)
	}
	b.ok("run", "-q")
	return b
}

// changeAll changes each item, so that the rules as they are now hold for it.
func (b *bench) changeAll() {
	b.t.Helper()
	for _, year := range []string{"1845", "1920", "1999"} {
		b.ok("item", "set", "map-"+year, "--metadata", "changed=yes")
	}
}

// copied is a workspace and what lies beside it, as they stand now.
func (b *bench) copied(t *testing.T, name string) *bench {
	t.Helper()
	c := *b
	c.t, c.top = t, filepath.Join(t.TempDir(), name)
	c.dir = filepath.Join(c.top, "ws")
	b.must(os.MkdirAll(c.top, 0o777))
	if out, err := exec.Command("cp", "-a", b.top+"/.", c.top).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v: %s", b.top, err, out)
	}
	return &c
}

// delivered checks that both targets hold the items of these years, and nothing else.
func (b *bench) delivered(years ...string) {
	b.t.Helper()
	var holds []string
	b.must(filepath.WalkDir(filepath.Join(b.top, "portal"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".") && d.Name() != ".bagpipe" {
			b.t.Errorf("%s is left", p)
		}
		if err != nil || d.Name() != "sheet.txt" {
			return err
		}
		data, err := os.ReadFile(p)
		holds = append(holds, string(data))
		return err
	}))
	slices.Sort(holds)
	if !slices.Equal(holds, years) {
		b.t.Errorf("the portal holds %v, want %v\n%s", holds, years, b.ok("delivery"))
	}
	kept, err := os.ReadDir(filepath.Join(b.dir, "tool"))
	b.must(err)
	if len(kept) != len(years) {
		b.t.Errorf("the tool holds %d items, want %d\n%s", len(kept), len(years), b.ok("delivery"))
	}
	if b.exists("ws/again") {
		b.t.Error("what had come there was sent again")
	}
	if notes, err := os.ReadDir(filepath.Join(b.top, "portal/.bagpipe")); err != nil || len(notes) != len(years) {
		b.t.Errorf("%d notes in the portal, want %d (%v)", len(notes), len(years), err)
	}
}
