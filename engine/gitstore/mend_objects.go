package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/gitstore/internal/call"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: the index of a sound pack is made anew from it. Of a damaged pack all objects that can be read are unpacked beside it, and the
// rest is had from other packs, from the files in the items' folders, or from a copy of the
// repository. What is found is one new pack, synced; only then, and only where nothing that
// the damaged one had is missing, the damaged files go. A crash leaves objects twice.

// Mended is what a repair came to.
type Mended struct {
	Packs   []string `json:"packs"`   // damaged, and replaced
	Indexes []string `json:"indexes"` // of sound packs, damaged, and made anew
	Loose   int      `json:"loose"`   // damaged loose objects, replaced
	Found   int      `json:"found"`   // objects had from elsewhere
	Missing []string `json:"missing"` // that nothing had; their packs stay
	// Silent are the repositories that were asked, and could not be read: why, by name or address.
	Silent map[string]string `json:"silent"`
}

// MendObjects replaces the damaged and missing objects of the workspace at root. from are
// repositories, or names of remotes, that may have them; files are copies of committed files.
func MendObjects(ctx context.Context, root string, from []string, files func(yield func(path string) bool)) (m Mended, err error) {
	git := filepath.Join(root, layout.RepositoryDir)
	if err := unhideAll(git); err != nil {
		return m, err
	}
	scratch, err := os.MkdirTemp(git, "mending-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, disk.RemoveTree(scratch)) }()
	w := &mending{root: root, git: git, found: filepath.Join(scratch, "objects"), from: from, files: files, scratch: scratch, silent: map[string]string{}}
	if err := os.MkdirAll(filepath.Join(w.found, "pack"), 0o755); err != nil {
		return m, err
	}
	wanted, packs, err := w.damagedPacks(ctx)
	if err != nil {
		return m, err
	}
	loose, err := w.damagedLoose()
	if err != nil {
		return m, err
	}
	for _, name := range loose {
		wanted[name] = true
	}
	for hidden := range packs {
		if err := w.hide(hidden); err != nil {
			return m, errors.Join(err, w.unhide())
		}
	}
	m, err = w.mend(ctx, wanted, packs, loose)
	m.Silent = w.silent
	return m, errors.Join(err, w.unhide())
}

type mending struct {
	root, git, scratch string
	found              string // an object folder with what was found
	from               []string
	files              func(func(string) bool)
	indexes            []string          // made anew
	hidden             []string          // packs that are out of the way of git
	silent             map[string]string // of from: why it could not be read
}

// say runs git on the repository, or on the objects that were found.
func (w *mending) say(ctx context.Context, dir string, in []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", slices.Concat([]string{"--git-dir=" + dir, "-c", "core.commitGraph=false"}, repo.Windows, args)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_NO_REPLACE_OBJECTS=1")
	var wrong bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &wrong
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(wrong.Bytes()))
	}
	return out, err
}

// hide takes a pack out of git's sight, by its index; unhide brings it back.
func (w *mending) hide(base string) error {
	if _, err := os.Lstat(base + ".idx"); err == nil {
		if err := os.Rename(base+".idx", base+".mending"); err != nil {
			return err
		}
	}
	w.hidden = append(w.hidden, base)
	return nil
}

func (w *mending) unhide() (err error) {
	for _, base := range w.hidden {
		if _, errThere := os.Lstat(base + ".mending"); errThere == nil {
			err = errors.Join(err, os.Rename(base+".mending", base+".idx"))
		}
	}
	w.hidden = nil
	return err
}

// beside is an environment in which git reads the repository and writes to what was found.
func (w *mending) beside(ctx context.Context, in *os.File, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", slices.Concat([]string{"--git-dir=" + w.git, "-c", "core.commitGraph=false"}, args)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_OBJECT_DIRECTORY="+w.found, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+filepath.Join(w.git, "objects"))
	if in != nil {
		cmd.Stdin = in
	}
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	err := cmd.Run()
	if err != nil && saysFull(wrong.String()) {
		return fmt.Errorf("git %s: %w: %s", args[0], errNoRoom, gitsReason(wrong.String()))
	}
	return err
}

var errNoRoom = errors.New("the disk is full")

// littleRoom is what a clone may need: with less it is not the other repository that fails.
const littleRoom = 16 << 20

// unpack has what can be read of the damaged packs.
func (w *mending) unpack(ctx context.Context, packs map[string]bool) error {
	for base := range packs {
		pack, err := os.Open(base + ".pack")
		if err != nil {
			continue
		}
		err = w.beside(ctx, pack, "unpack-objects", "-r", "-q")
		pack.Close()
		if errors.Is(err, errNoRoom) { // what it could not write is not missing
			return err
		}
	}
	return nil
}

// putBack brings damaged loose objects back that nothing replaced.
func (w *mending) putBack(bad string, loose []string) (err error) {
	for _, name := range loose {
		if _, there := os.Lstat(w.loosePath(name)); there != nil {
			if errMove := os.Rename(filepath.Join(bad, name), w.loosePath(name)); !errors.Is(errMove, fs.ErrNotExist) { // it was not moved yet
				err = errors.Join(err, errMove)
			}
		}
	}
	return err
}

func (w *mending) mend(ctx context.Context, wanted, packs map[string]bool, loose []string) (m Mended, err error) {
	m.Packs, m.Missing, m.Indexes = []string{}, []string{}, slices.Concat([]string{}, w.indexes)
	bad := filepath.Join(w.scratch, "loose")
	replaced := false
	defer func() {
		if !replaced {
			err = errors.Join(err, w.putBack(bad, loose))
		}
	}()
	for _, name := range loose { // out of the way; they come back if nothing has them
		if err := errors.Join(os.MkdirAll(bad, 0o755), os.Rename(w.loosePath(name), filepath.Join(bad, name))); err != nil {
			return m, err
		}
	}
	if err := w.unpack(ctx, packs); err != nil {
		return m, err
	}
	for round := range mendRounds {
		if err := w.reachable(ctx, wanted); err != nil {
			return m, err
		}
		lacking, err := w.lacking(ctx, wanted)
		if err != nil || len(lacking) == 0 {
			m.Missing = nil
			if err != nil {
				return m, err
			}
			break
		}
		m.Missing = lacking
		n, err := w.find(ctx, lacking)
		if err != nil {
			return m, err
		}
		m.Found += n
		if n == 0 || round == mendRounds-1 {
			break
		}
	}
	if err := w.keep(ctx); err != nil {
		return m, err
	}
	if len(m.Missing) > 0 {
		return m, nil
	}
	replaced = true
	m.Missing, m.Loose = []string{}, len(loose)
	for base := range packs {
		m.Packs = append(m.Packs, filepath.Base(base)+".pack")
		for _, end := range []string{".mending", ".idx", ".rev", ".bitmap", ".keep", ".pack"} { // the bytes go last
			if err := layout.RemoveIfThere(base + end); err != nil {
				return m, err
			}
		}
	}
	slices.Sort(m.Packs)
	if len(packs)+len(loose)+len(m.Indexes)+m.Found > 0 {
		// They may tell of objects where they were.
		err = errors.Join(disk.RemoveTree(filepath.Join(w.git, "objects", "info", "commit-graphs")), layout.RemoveIfThere(filepath.Join(w.git, "objects", "info", "commit-graph")))
	}
	return m, errors.Join(err, disk.SyncDir(filepath.Join(w.git, "objects", "pack")))
}

// mendRounds bounds how often what was found shows that more is missing.
const mendRounds = 64

// lacking lists the objects that neither the repository nor what was found has whole.
func (w *mending) lacking(ctx context.Context, wanted map[string]bool) (names []string, err error) {
	var in bytes.Buffer
	for _, name := range slices.Sorted(keysOf(wanted)) {
		in.WriteString(name + "\n")
	}
	cmd := exec.CommandContext(ctx, "git", "--git-dir="+w.git, "cat-file", "--batch-check=%(objectname) %(objecttype)")
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_ALTERNATE_OBJECT_DIRECTORIES="+w.found)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if name, is := strings.CutSuffix(strings.TrimSpace(line), " missing"); is {
			names = append(names, name)
		}
	}
	return names, nil
}

func keysOf(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// reachable adds to wanted what the branches need and is not there.
func (w *mending) reachable(ctx context.Context, wanted map[string]bool) error {
	cmd := exec.CommandContext(ctx, "git", slices.Concat([]string{"--git-dir=" + w.git, "-c", "core.commitGraph=false"}, repo.Windows, []string{"fsck", "--connectivity-only", "--no-dangling", "--no-progress", "--no-reflogs"})...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_ALTERNATE_OBJECT_DIRECTORIES="+w.found)
	out, _ := cmd.CombinedOutput() // it fails where something is missing
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		for i, word := range f {
			if _, err := ParseHash(strings.Trim(word, ":,")); err == nil && (f[0] == "missing" || f[0] == "to" || f[0] == "error:" || f[0] == "fatal:" || i > 0 && f[i-1] == "object") {
				wanted[strings.Trim(word, ":,")] = true
			}
		}
	}
	return ctx.Err()
}

// find brings the objects from the items' folders and from the copies.
func (w *mending) find(ctx context.Context, lacking []string) (n int, err error) {
	want := map[string]bool{}
	for _, name := range lacking {
		want[name] = true
	}
	var paths bytes.Buffer
	if w.files != nil {
		for p := range w.files {
			if !strings.Contains(p, "\n") {
				paths.WriteString(p + "\n")
			}
		}
	}
	names, err := w.say(ctx, w.git, paths.Bytes(), "hash-object", "--no-filters", "--stdin-paths")
	if err != nil {
		return 0, err
	}
	all := strings.Split(paths.String(), "\n")
	i := 0
	for name := range strings.Lines(string(names)) {
		if name = strings.TrimSpace(name); want[name] {
			err := w.beside(ctx, nil, "hash-object", "-w", "--no-filters", "--", all[i])
			if errors.Is(err, errNoRoom) {
				return n, err
			}
			if err == nil {
				delete(want, name)
				n++
			}
		}
		i++
	}
	for k, from := range w.from {
		if len(want) == 0 {
			break
		}
		copied := filepath.Join(w.scratch, fmt.Sprintf("copy-%d", k))
		if _, err := os.Lstat(copied); err != nil {
			address := from
			if url, err := w.say(ctx, w.git, nil, "remote", "get-url", from); err == nil {
				address = strings.TrimSpace(string(url))
			}
			if w.silent[from] != "" {
				continue
			}
			if err := w.copy(ctx, address, copied); err != nil {
				if ctx.Err() != nil || errors.Is(err, errNoRoom) {
					return n, err
				}
				w.silent[from] = err.Error()
				continue
			}
		}
		got, err := w.fromCopy(ctx, copied, want)
		n += got
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// copy clones a repository that may have what is wanted; what a clone leaves that ended badly is removed.
func (w *mending) copy(ctx context.Context, address, to string) error {
	said, err := call.Run(ctx, 0, w.root, unprompted(), io.Discard, "clone", "--progress", "--mirror", "--no-local", "--", address, to)
	if err == nil {
		return nil
	}
	if call.GivenUp(err) {
		said = ""
	}
	why := gitsReason(said)
	room, errRoom := disk.Free(w.scratch) // git does not always say what it ended for
	if saysFull(said) || errRoom == nil && room < littleRoom {
		return fmt.Errorf("git clone: %w: %s", errNoRoom, why)
	}
	return errors.Join(&refusedError{call: "clone", why: err, said: said}, disk.RemoveTree(to))
}

// fromCopy packs the objects that a copy has, into what was found.
func (w *mending) fromCopy(ctx context.Context, copied string, want map[string]bool) (n int, err error) {
	var in bytes.Buffer
	for name := range want {
		in.WriteString(name + "\n")
	}
	out, err := w.say(ctx, copied, in.Bytes(), "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return 0, err
	}
	in.Reset()
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); len(name) == 40 {
			in.WriteString(name + "\n")
			delete(want, name)
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	_, err = w.say(ctx, copied, in.Bytes(), "pack-objects", "--quiet", "--no-reuse-delta", filepath.Join(w.found, "pack", "pack"))
	return n, err
}

// keep brings what was found into the repository, as one pack.
func (w *mending) keep(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "git", "--git-dir="+w.git, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_OBJECT_DIRECTORY="+w.found)
	names, err := cmd.Output()
	if err != nil || len(names) == 0 {
		return err
	}
	pack := exec.CommandContext(ctx, "git", "--git-dir="+w.git, "-c", "core.fsync=all", "pack-objects", "--quiet", filepath.Join(w.git, "objects", "pack", "pack"))
	pack.Env = append(os.Environ(), "LC_ALL=C", "GIT_OBJECT_DIRECTORY="+w.found)
	pack.Stdin = bytes.NewReader(names)
	if out, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("git pack-objects: %w: %s", err, bytes.TrimSpace(out))
	}
	return disk.SyncDir(filepath.Join(w.git, "objects", "pack"))
}

func (w *mending) loosePath(name string) string {
	return filepath.Join(w.git, "objects", name[:2], name[2:])
}

// unhideAll brings back the packs that a repair which was killed had taken out of sight.
func unhideAll(git string) error {
	left, err := filepath.Glob(filepath.Join(git, "objects", "pack", "*.mending"))
	for _, path := range left {
		err = errors.Join(err, os.Rename(path, strings.TrimSuffix(path, ".mending")+".idx"))
	}
	return err
}
