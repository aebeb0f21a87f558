package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bagOf makes a bag of the payload with these algorithms.
func (b *bench) bagOf(ctx context.Context, top, payload string, as ...string) (string, error) {
	bag := filepath.Join(top, strings.Join(as, "-"))
	_, err := measured(ctx, top, append([]string{b.program, "bag", "create", payload, bag, "--link", "--no-sync", "--quiet"}, algorithms(as)...))
	return bag, err
}

func algorithms(as []string) (flags []string) {
	for _, a := range as {
		flags = append(flags, "--algorithm", a)
	}
	return flags
}

func (b *bench) validate(ctx context.Context, top, payload string, as ...string) (*row, error) {
	bag, err := b.bagOf(ctx, top, payload, as...)
	r := command("bagpipe bag validate, "+strings.Join(as, "+"), top, b.program, "bag", "validate", bag, "--quiet")
	r.ours = true
	return r, err
}

// create makes a bag beside the payload with links; undo removes it.
func (b *bench) create(top, payload string, as ...string) *row {
	made := filepath.Join(top, "made")
	r := command("bagpipe bag create --link, "+strings.Join(as, "+"), top,
		append([]string{b.program, "bag", "create", payload, made, "--link", "--no-sync", "--quiet"}, algorithms(as)...)...)
	r.ours, r.after = true, func() error { return os.RemoveAll(made) }
	return r
}

// inPlace makes the payload a bag where it stands; undo makes it a payload again.
func (b *bench) inPlace(payload string, sync bool, as ...string) *row {
	name, flag := "bagpipe bag create --in-place, ", "--no-sync"
	if sync {
		name, flag = "bagpipe bag create --in-place, durably, ", "--sync"
	}
	r := command(name+strings.Join(as, "+"), filepath.Dir(payload),
		append([]string{b.program, "bag", "create", "--in-place", payload, flag, "--quiet"}, algorithms(as)...)...)
	r.ours, r.after = true, func() error { return shell(payload, "rm *.txt && mv data/* . && rmdir data") }
	return r
}

func shell(dir, script string) error {
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", script, err, out)
	}
	return nil
}

func script(name, dir, text string, after func() error) *row {
	r := command(name, dir, "sh", "-c", text)
	r.after = after
	return r
}

func xargs(dir string, n int, program string) *row {
	if _, err := exec.LookPath(strings.Fields(program)[0]); err != nil {
		return nil
	}
	return command(fmt.Sprintf("xargs -P2 -n%d %s", n, program), dir, "sh", "-c",
		fmt.Sprintf("find . -type f -print0 | xargs -0 -P2 -n%d %s >/dev/null", n, program))
}

// bagitPy is the reference implementation, where a person has it.
func bagitPy(top, bag, as string) *row {
	py := os.Getenv("BAGIT_PY")
	if py == "" {
		return nil
	}
	return command("bagit.py --validate --processes 2, "+as, top, "python3", py, "--validate", "--processes", "2", bag)
}

func present(rows ...*row) (all []*row) {
	for _, r := range rows {
		if r != nil {
			all = append(all, r)
		}
	}
	return all
}

func floorRow(payload string) *row {
	return &row{name: "floor: Go's sha512", run: func(context.Context) (sample, error) { return floor(payload) }}
}

// sameListing and sameMoves are what create --in-place does besides hashing: the files
// are listed before and after, and the two compared, so that what changed meanwhile is
// found; then everything moves into data/.
const (
	sameBefore = `find . -type f -printf '%s %T@ %p\n' >../before && `
	sameAfter  = ` && find . -type f -printf '%s %T@ %p\n' >../after && cmp ../before ../after && mkdir data && mv [0-9]* data/`
)

// small is many small files: what is around the hashing counts.
func (b *bench) small(ctx context.Context, top string) error {
	payload := filepath.Join(top, "payload")
	if err := (shape{20_000, 4 << 10}).write(payload); err != nil {
		return err
	}
	floor, n64, n5000 := floorRow(payload), xargs(payload, 64, "sha512sum"), xargs(payload, 5000, "sha512sum")
	valid, err := b.validate(ctx, top, payload, "sha512")
	if err != nil {
		return err
	}
	both, err := b.validate(ctx, top, payload, "sha256", "sha512")
	if err != nil {
		return err
	}
	hash := `find . -type f -print0 | xargs -0 -P2 -n5000 sha512sum >../manifest`
	linked := script("cp -al, then xargs -P2 -n5000 sha512sum", top,
		`cp -al payload linked && cd linked && `+hash, func() error { return shell(top, "rm -r linked manifest") })
	moved := script("find, xargs -P2 -n5000 sha512sum, find, mv", payload, sameBefore+hash+sameAfter,
		func() error { return shell(payload, "mv data/* . && rmdir data") })
	create, inPlace, durably := b.create(top, payload, "sha512"), b.inPlace(payload, false, "sha512"), b.inPlace(payload, true, "sha512")
	openssl, py := xargs(payload, 5000, "openssl dgst -sha512"), bagitPy(top, filepath.Join(top, "sha256-sha512"), "sha256+sha512")
	rows := present(floor, n64, n5000, openssl, valid, both, py, inPlace, durably, moved, create, linked)
	if err := interleaved(ctx, rows, b.rounds); err != nil {
		return err
	}
	report("small: 20,000 files of 4 KiB", rows)
	beside(valid, 0.9, n64, n5000)
	beside(valid, 0, openssl)
	beside(both, 0, py)
	beside(inPlace, 0.9, n64, n5000)
	fmt.Println("  beside the same work, which sha512sum alone does not do:")
	beside(inPlace, 0.9, moved)
	beside(create, 0.9, linked)
	memory(rows, 64)
	return nil
}

// large is the hashing itself.
func (b *bench) large(ctx context.Context, top string) error {
	payload := filepath.Join(top, "payload")
	if err := (shape{20, 100 << 20}).write(payload); err != nil {
		return err
	}
	floor, peer, openssl := floorRow(payload), xargs(payload, 1, "sha512sum"), xargs(payload, 1, "openssl dgst -sha512")
	valid, err := b.validate(ctx, top, payload, "sha512")
	if err != nil {
		return err
	}
	both, err := b.validate(ctx, top, payload, "sha256", "sha512")
	if err != nil {
		return err
	}
	create, inPlace := b.create(top, payload, "sha512"), b.inPlace(payload, false, "sha512")
	py := bagitPy(top, filepath.Join(top, "sha256-sha512"), "sha256+sha512")
	rows := present(floor, peer, openssl, valid, create, inPlace, both, py)
	if err := interleaved(ctx, rows, b.rounds); err != nil {
		return err
	}
	report("large: 20 files of 100 MiB", rows)
	for _, ours := range []*row{valid, create, inPlace} {
		beside(ours, 0.95, floor)
		beside(ours, 1, peer)
	}
	beside(valid, 0, openssl)
	beside(both, 0, py)
	memory(rows, 64)
	return nil
}

// one is a file alone: a core is free, so that two digests should cost what the slower
// one does.
func (b *bench) one(ctx context.Context, top string) error {
	payload := filepath.Join(top, "payload")
	if err := (shape{1, 500 << 20}).write(payload); err != nil {
		return err
	}
	single, err := b.validate(ctx, top, payload, "sha512")
	if err != nil {
		return err
	}
	both, err := b.validate(ctx, top, payload, "sha256", "sha512")
	if err != nil {
		return err
	}
	alone := script("sha512sum", payload, "sha512sum */* >/dev/null", nil)
	pair := script("sha256sum beside sha512sum", payload, "sha256sum */* >/dev/null & sha512sum */* >/dev/null; wait", nil)
	rows := present(alone, pair, single, both)
	if err := interleaved(ctx, rows, b.rounds); err != nil {
		return err
	}
	report("one: a file of 500 MiB", rows)
	atMost("sha256+sha512 in one pass to sha512 alone", both.median().wall.Seconds()/single.median().wall.Seconds(), 1.1, "x")
	fmt.Printf("  the same by two programs at once, for how free the second core is: %.2fx\n", pair.median().wall.Seconds()/alone.median().wall.Seconds())
	memory(rows, 64)
	return nil
}

// many is for the memory, in every form that a bag comes in.
func (b *bench) many(ctx context.Context, top string) error {
	payload := filepath.Join(top, "payload")
	if err := (shape{100_000, 100}).write(payload); err != nil {
		return err
	}
	valid, err := b.validate(ctx, top, payload, "sha512")
	if err != nil {
		return err
	}
	rows := []*row{valid, b.create(top, payload, "sha512")}
	for _, format := range []string{"zip", "tar", "tar.gz"} {
		archive := filepath.Join(top, "sha512."+format)
		if _, err := measured(ctx, top, []string{b.program, "bag", "serialize", filepath.Join(top, "sha512"), "--to", archive, "--format", format, "--no-verify", "--no-sync", "--quiet"}); err != nil {
			return err
		}
		r := command("bagpipe bag validate, sha512, "+format, top, b.program, "bag", "validate", archive, "--quiet")
		r.ours = true
		rows = append(rows, r)
	}
	if err := interleaved(ctx, rows, min(b.rounds, 3)); err != nil {
		return err
	}
	report("many: 100,000 files of 100 bytes", rows)
	memory(rows, 200)
	return nil
}
