package gitstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
)

// madeMeanwhile tells a line on an entry of a reflog whose commit is there: git lists the
// packs first and reads the reflogs last, and does not know what a running engine committed in
// between.
func madeMeanwhile(ctx context.Context, root, line string) bool {
	_, hash, is := strings.Cut(line, ": invalid reflog entry ")
	if !is {
		return false
	}
	_, err := gitSays(ctx, root, nil, "cat-file", "-e", strings.TrimSpace(hash)+"^{commit}")
	return err == nil
}

// Fsck has the git program check every object of the workspace at root, and gives what it
// says, a line each; none where all is sound. Of a tip that is not zero, it reads the objects
// alone that the tip needs and since does not.
func Fsck(ctx context.Context, root string, tip, since Hash) ([]string, error) {
	args := []string{"fsck", "--strict", "--no-dangling", "--no-progress"}
	if !since.IsZero() {
		args = []string{"rev-list", "--quiet", "--verify-objects", tip.String(), "^" + since.String()}
	}
	cmd := exec.CommandContext(ctx, "git", slices.Concat([]string{"--git-dir=" + filepath.Join(root, layout.RepositoryDir)}, repo.Windows, args)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	said := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	var code *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &code) && len(said) > 0:
		return slices.DeleteFunc(said, func(line string) bool { return madeMeanwhile(ctx, root, line) }), nil
	case err != nil:
		return said, fmt.Errorf("git %s: %w", args[0], err)
	}
	return said, nil
}

// Connected looks whether the objects are there that other references than the tip need; those to commits, or tags of
// commits, that lead to the tip need no others.
func Connected(ctx context.Context, root string, tip Hash, leads func(Hash) bool) error {
	out, err := gitSays(ctx, root, nil, asItIs("for-each-ref", "--format=%(objectname) %(*objectname)")...)
	if err != nil {
		return err
	}
	var others bytes.Buffer
	for line := range strings.Lines(string(out)) {
		name, of, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if h, err := ParseHash(cmp.Or(of, name)); err != nil || !leads(h) {
			others.WriteString(name + "\n")
		}
	}
	if others.Len() == 0 {
		return nil
	}
	others.WriteString("^" + tip.String() + "\n")
	_, err = gitSays(ctx, root, others.Bytes(), asItIs("rev-list", "--quiet", "--objects", "--stdin")...)
	return err
}

// asItIs are the arguments of a git program that is to follow what the commits say, and neither
// what .git/shallow or .git/info/grafts say of them nor objects in their place.
func asItIs(args ...string) []string {
	return append([]string{"--no-replace-objects", "--shallow-file", ""}, args...)
}

// ParentsFirst lists the commits of the workspace at root that lead to a tip and not to
// since, which may be zero, each after its parents. Where the history is cut off below a commit
// that Git holds for one without parents, it is an error.
func ParentsFirst(ctx context.Context, root string, tip, since Hash) ([]Hash, error) {
	args := asItIs("rev-list", "--topo-order", "--reverse", tip.String())
	if !since.IsZero() {
		args = append(args, "^"+since.String())
	}
	out, err := gitSays(ctx, root, nil, args...)
	if err != nil {
		return nil, cmp.Or(shallow(filepath.Join(root, layout.RepositoryDir)), err)
	}
	commits := make([]Hash, 0, len(out)/41)
	for line := range bytes.Lines(out) {
		h, err := ParseHash(string(bytes.TrimSpace(line)))
		if err != nil {
			return nil, err
		}
		commits = append(commits, h)
	}
	return commits, nil
}
