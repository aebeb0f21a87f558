package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	filesInFolder  = 20
	registeredOf   = 20 // of so many files one, in the table of objects that become items
	changedFolders = 100
)

// noRule stands for the shipped rule that takes everything: of the files no items are made.
const noRule = "schema: 1\nname: default\nrules:\n  - {name: none, match: {name: nothing}}\n"

// namesAlone stand for the shipped rules that ask what is in a file: no file is opened by these.
const namesAlone = noRule + `  - {name: scene, match: {regexp: '(?i)^GF1_(?<sensor>[a-z]+\d)_'}}
  - {name: image, match: {extension: [tif, jp2], kind: [file, archive]}}
`

// catalogs prints what scans of a catalog take beside find, which looks at the same files.
func catalogs(b *bench) (err error) {
	files := b.files
	root := filepath.Join(b.work, "catalogued")
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	folders, err := fill(root, files)
	if err != nil {
		return err
	}
	find := func() (sample, error) { return measure(b.command("find", root, "-fprintf", os.DevNull, "%s %T@ %p\n")) }
	if _, err := find(); err != nil { // has the folders in memory
		return err
	}
	_, byContent, err := firstScan(b, "content", root, map[string]string{"default": noRule})
	if err != nil {
		return err
	}
	byNames := map[string]string{"default": namesAlone}
	for _, name := range []string{"archives", "bags", "documents", "images", "media", "satellites", "shapefiles"} {
		byNames[name] = "schema: 1\nname: " + name + "\nrules: []\n"
	}
	w, first, err := firstScan(b, "catalog", root, byNames)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	counted, err := w.git("count-objects", "-v")
	if err != nil {
		return err
	}
	rounds, err := rescans(b, w, root, find, folders)
	if err != nil {
		return err
	}
	floor := middle(rounds[0])
	fmt.Printf("\ncatalog: %d files in %d folders; times as find -printf takes them, on the clock and of a processor\n", files, len(folders))
	row := func(name string, s sample, target string) {
		fmt.Printf("  %-36s %8.2f s %6.2f x %6.2f x %5d MB  (target: %s)\n", name, s.wall.Seconds(), s.wall.Seconds()/floor.wall.Seconds(), s.cpu.Seconds()/floor.cpu.Seconds(), s.memory>>20, target)
	}
	row("find", floor, "the floor")
	row("listed, known by name, committed", first, "3, and 50,000 entries a second; 400 MB")
	row("by the shipped rules: files are read", byContent, "none")
	row("deep, nothing changed", middle(rounds[1]), "1.2, aim 0.8")
	row("git status, nothing changed", middle(rounds[2]), "no less than deep")
	row("shallow, nothing changed", middle(rounds[3]), "0.15")
	row(strconv.Itoa(changedFolders)+" folders changed", middle(rounds[4]), "those alone committed")
	if err := registered(b, files/registeredOf); err != nil {
		return err
	}
	for line := range strings.Lines(counted) {
		if kib, is := strings.CutPrefix(line, "size-pack: "); is {
			n, err := strconv.Atoi(strings.TrimSpace(kib))
			fmt.Printf("  %.1f bytes a file in packs (target: 60)\n", float64(n<<10)/float64(files))
			return err
		}
	}
	return nil
}

// rescans takes turns at find, a deep scan, git status, a shallow scan, and one after folders changed.
func rescans(b *bench, w *workspace, root string, find func() (sample, error), folders []string) (rounds [5][]sample, err error) {
	status, err := gitStatus(b, root)
	if err != nil {
		return rounds, err
	}
	for n := range b.rounds {
		calls := []func() (sample, error){find,
			func() (sample, error) { return measure(w.command("catalog", "scan", "-q")) },
			status,
			func() (sample, error) { return measure(w.command("catalog", "scan", "--shallow", "-q")) },
			func() (sample, error) { return w.scanChanged(folders[:min(changedFolders, len(folders))], n) }}
		for i, call := range calls {
			s, err := call()
			if err != nil {
				return rounds, err
			}
			rounds[i] = append(rounds[i], s)
		}
	}
	return rounds, nil
}

// gitStatus has Git know the files below a root, and gives the call that compares them with what it knows.
func gitStatus(b *bench, root string) (func() (sample, error), error) {
	dir := filepath.Join(b.work, "status.git")
	git := func(args ...string) (sample, error) {
		return measure(b.command("git", append([]string{"--git-dir", dir, "--work-tree", root}, args...)...))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-qm", "all"}, {"status"}} {
		if _, err := git(args...); err != nil {
			return nil, err
		}
	}
	return func() (sample, error) { return git("status", "--short") }, nil
}

// firstScan has a root catalogued in a workspace of its own, by rules that stand for shipped ones.
func firstScan(b *bench, name, root string, rules map[string]string) (*workspace, sample, error) {
	w, err := b.newWorkspace(name, noopWorkflow())
	if err != nil {
		return nil, sample{}, err
	}
	for file, text := range rules {
		if err := w.write("rules/"+file+".yaml", text); err != nil {
			return nil, sample{}, err
		}
	}
	if _, err := measure(w.command("catalog", "add", "c", root)); err != nil {
		return nil, sample{}, err
	}
	s, err := measure(w.command("catalog", "scan", "-q"))
	return w, s, err
}

// registered prints what it takes to make items of objects in place, beside sha512sum, which reads
// the same files.
func registered(b *bench, objects int) (err error) {
	w, err := b.newWorkspace("registered", noopWorkflow())
	if err != nil {
		return err
	}
	root := filepath.Join(b.work, "objects")
	defer func() { err = errors.Join(err, w.remove(), os.RemoveAll(root)) }()
	if _, err := fill(root, objects); err != nil {
		return err
	}
	if _, err := measure(w.command("catalog", "add", "c", root)); err != nil {
		return err
	}
	time.Sleep(3 * time.Second) // what is younger is waited for, which is not measured
	floor, err := measure(b.command("find", root, "-type", "f", "-exec", "sha512sum", "{}", "+"))
	if err != nil {
		return err
	}
	s, err := measure(w.command("catalog", "scan", "-q"))
	if err != nil {
		return err
	}
	n := float64(objects)
	fmt.Printf("  %d objects become items: %.0f/s, %.2f ms of a processor each, %.0f x sha512sum  (target: 5,000/s)\n",
		objects, n/s.wall.Seconds(), 1000*s.cpu.Seconds()/n, s.cpu.Seconds()/floor.cpu.Seconds())
	return nil
}

// fill makes a tree of empty files, and gives the folders that hold them.
func fill(root string, files int) (folders []string, err error) {
	for n := range files {
		if n%filesInFolder == 0 {
			f := n / filesInFolder
			folders = append(folders, filepath.Join(root, fmt.Sprintf("%02x", f%16), fmt.Sprintf("%02x", f/16%64), fmt.Sprintf("d%05d", f)))
			if err := os.MkdirAll(folders[f], 0o777); err != nil {
				return nil, err
			}
		}
		if err := os.WriteFile(filepath.Join(folders[len(folders)-1], fmt.Sprintf("scan_%07d.dat", n)), nil, 0o666); err != nil {
			return nil, err
		}
	}
	return folders, nil
}

// scanChanged has one file more in some folders, and scans.
func (w *workspace) scanChanged(folders []string, round int) (sample, error) {
	for _, dir := range folders {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("more-%d.dat", round)), nil, 0o666); err != nil {
			return sample{}, err
		}
	}
	time.Sleep(3 * time.Second) // what is younger is waited for, which is not measured
	before, err := w.git("rev-parse", "HEAD")
	if err != nil {
		return sample{}, err
	}
	s, err := measure(w.command("catalog", "scan", "-q"))
	if err != nil {
		return s, err
	}
	changed, err := w.git("diff", "--name-only", before, "HEAD")
	if n := len(strings.Fields(changed)); err == nil && n != len(folders) {
		err = fmt.Errorf("%d records were committed of %d folders", n, len(folders))
	}
	return s, err
}
