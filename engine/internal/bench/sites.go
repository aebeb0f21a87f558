package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sitesRows are what sites measures, in the order of a round.
var sitesRows = []string{"git fetch, git push", "sync that joins", "sync, nothing new", "audit", "git fsck --full"}

// sites prints what a sync takes that joins: a tenth of the items changed on either side, a tenth
// of these on both, beside a fetch and a push by git of the same commits; and what an audit takes of
// the same history.
func (b *bench) sites(items int) error {
	got := make([][]sample, len(sitesRows))
	for range b.rounds {
		round, err := b.sitesRound(items)
		if err != nil {
			return err
		}
		for i, s := range round {
			got[i] = append(got[i], s)
		}
	}
	fmt.Printf("sites: %d items, %d transitions on either side, %d items touched by both; medians of %d (targets: joined in 5 s; 0.3 s; half of fsck)\n", items, items/10, items/100, b.rounds)
	fmt.Printf("%20s %10s %10s %8s\n", "", "time", "CPU", "MB")
	for i, name := range sitesRows {
		s := middle(got[i])
		fmt.Printf("%20s %8.2f s %8.2f s %8d\n", name, s.wall.Seconds(), s.cpu.Seconds(), s.memory>>20)
	}
	fmt.Printf("%20s %8.2f s\n", "the join alone", (middle(got[1]).wall - middle(got[0]).wall).Seconds())
	return nil
}

// sitesRound measures the rows once.
func (b *bench) sitesRound(items int) (round []sample, err error) {
	lab, err := b.newWorkspace("lab", noopWorkflow())
	if err != nil {
		return nil, err
	}
	field, hub := &workspace{b: b, root: filepath.Join(b.work, "field")}, filepath.Join(b.work, "hub.git")
	for _, of := range []struct {
		collection string
		share      int // of a hundred
	}{{"ours", 9}, {"both", 1}, {"theirs", 9}, {"rest", 81}} {
		if _, err := measure(lab.command("collection", "add", of.collection)); err != nil {
			return nil, err
		}
		if err := lab.imported(of.collection, items*of.share/100, 0, false); err != nil {
			return nil, err
		}
	}
	hold := func(w *workspace, collection string) *exec.Cmd {
		return w.command("hold", "--yes", "-m", "rights", "--collection", collection)
	}
	for _, c := range []*exec.Cmd{
		b.command("git", "init", "-q", "--bare", "-b", "main", hub), lab.command("site", "lab"), lab.command("remote", "add", "origin", hub),
		lab.command("sync"), b.command(b.program, "clone", hub, field.root, "--site", "field"),
		hold(lab, "ours"), hold(lab, "both"), hold(field, "theirs"), hold(field, "both"), lab.command("sync"),
	} {
		if _, err := measure(c); err != nil {
			return nil, err
		}
	}
	moved, err := transfers(b, field.root, hub)
	if err != nil {
		return nil, err
	}
	round = append(round, moved)
	for _, c := range []*exec.Cmd{field.command("sync"), field.command("sync"), field.command("audit"), b.command("git", "-C", field.root, "fsck", "--full")} {
		s, err := measure(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(c.Args[1:], " "), err)
		}
		round = append(round, s)
	}
	return round, nil
}

// transfers measures what git takes to fetch and to push what a sync of the clone is about to,
// between copies of the two repositories.
func transfers(b *bench, clone, hub string) (both sample, err error) {
	from, to := filepath.Join(b.work, "from.git"), filepath.Join(b.work, "to.git")
	for _, c := range []*exec.Cmd{
		b.command("cp", "-a", hub, to), b.command("cp", "-a", filepath.Join(clone, ".git"), from),
		b.command("git", "-C", from, "remote", "set-url", "origin", to), b.command("git", "-C", from, "config", "fetch.fsckObjects", "true"),
	} {
		if _, err := measure(c); err != nil {
			return both, err
		}
	}
	for _, c := range []*exec.Cmd{b.command("git", "-C", from, "fetch", "-q", "origin"), b.command("git", "-C", from, "push", "-q", "origin", "HEAD:refs/heads/site/field")} {
		s, err := measure(c)
		if err != nil {
			return both, err
		}
		both.wall, both.cpu, both.memory = both.wall+s.wall, both.cpu+s.cpu, max(both.memory, s.memory)
	}
	return both, errors.Join(os.RemoveAll(from), os.RemoveAll(to))
}
