package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	exportedItems = 2000
	exportedFiles = 100_000 // of one item
)

// exportWorkflow has an inventory made, and some history.
const exportWorkflow = `schema: 1
name: bench
steps:
  - name: register
  - {name: inventory, robot: inventory}
  - {name: step1, robot: noop}
  - {name: step2, robot: noop}
`

// exports prints how many items a second go out in each form, and what an item of very many files takes of memory.
func exports(b *bench) (err error) {
	w, err := b.newWorkspace("exports", exportWorkflow)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	if err := w.register(exportedItems); err != nil {
		return err
	}
	if _, err := measure(w.command("run", "-q")); err != nil {
		return err
	}
	fmt.Printf("\nexports: %d items of one file, each form once (target: 1,000 items/s)\n%18s %10s %16s %10s\n", exportedItems, "", "items/s", "a CPU second", "MB")
	for i, args := range [][]string{{"--format", "turtle"}, {"--format", "jsonld"}, {"--format", "premis"}, {"--format", "mets"},
		{"--format", "csv"}, {"--format", "csv", "--table", "attempts"}, {"--format", "jsonl", "--table", "events"}, {"--format", "jsonl", "--table", "deposits"}, {"--format", "csv", "--table", "fixity"}} {
		s, err := w.export(append([]string{"export"}, args...), strconv.Itoa(i))
		if err != nil {
			return err
		}
		name := args[1]
		if len(args) > 2 {
			name += " " + args[3]
		}
		fmt.Printf("%18s %10.0f %16.0f %10d\n", name, exportedItems/s.wall.Seconds(), exportedItems/s.cpu.Seconds(), s.memory>>20)
	}
	if err := w.addLarge("large"); err != nil {
		return err
	}
	if _, err := measure(w.command("run", "-q")); err != nil {
		return err
	}
	fmt.Printf("an item of %d files (target: below 300 MB)\n", exportedFiles)
	for _, format := range []string{"premis", "mets", "turtle", "csv"} {
		s, err := w.export([]string{"export", "large", "--format", format}, "large-"+format)
		if err != nil {
			return err
		}
		fmt.Printf("%18s %8.1f s %14.1f s %10d\n", format, s.wall.Seconds(), s.cpu.Seconds(), s.memory>>20)
	}
	s, err := measure(w.command("export", "large", "--format", "mets", "--dip", filepath.Join(b.work, "dip")))
	if err == nil {
		fmt.Printf("%18s %8.1f s %14.1f s %10d\n", "--dip", s.wall.Seconds(), s.cpu.Seconds(), s.memory>>20)
	}
	return err
}

// export writes a form to a place of its own: documents of one item each into a folder, others into one file.
func (w *workspace) export(args []string, name string) (s sample, err error) {
	to := filepath.Join(w.b.work, "exported", name)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return s, err
	}
	if slices.Contains(args, "premis") || slices.Contains(args, "mets") {
		return measure(w.command(append(args, "--to", to)...))
	}
	c := w.command(args...)
	f, err := os.Create(to)
	if err != nil {
		return s, err
	}
	c.Stdout = f
	s, err = measure(c)
	return s, errors.Join(err, f.Close())
}

// addLarge takes in an item of very many small files.
func (w *workspace) addLarge(label string) error {
	dir := filepath.Join(w.b.work, label)
	for i := range exportedFiles {
		at := filepath.Join(dir, fmt.Sprintf("%03d", i/1000), fmt.Sprintf("file-%06d.txt", i))
		if i%1000 == 0 {
			if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
				return err
			}
		}
		if err := os.WriteFile(at, []byte(strconv.Itoa(i)), 0o666); err != nil {
			return err
		}
	}
	_, err := measure(w.command("add", "--workflow", "bench", dir))
	return errors.Join(err, os.RemoveAll(dir))
}
