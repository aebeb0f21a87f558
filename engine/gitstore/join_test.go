package gitstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A join is the same commit, byte for byte, whether the store packs it or git imports it, and whatever
// is packed stands whole; what the store does not write as git does is left to git.
func TestAJoinIsOneCommitHoweverWritten(t *testing.T) {
	o := testOptions()
	r := rand.New(rand.NewPCG(3, 5))
	name := func() string {
		return fmt.Sprintf("items/%x/%x/%s", r.IntN(3), r.IntN(3), []string{"manifest.json", "execution.json", "a b", "ä"}[r.IntN(4)])
	}
	files := map[string][]byte{}
	for range 30 {
		files[name()] = fmt.Appendf(nil, "%d\n", r.IntN(1000))
	}
	root := initRoot(t, o, files)
	s := openRoot(t, root, o)
	for _, script := range []string{"x", "dir/inner"} {
		put(t, s, script, "echo\n")
	}
	out, err := runCommand("sh", "-c", "cd '"+filepath.ToSlash(root)+"' && i=$(mktemp -u) && export GIT_INDEX_FILE=$i GIT_DIR=.git && git read-tree HEAD && git update-index --cacheinfo 100755,$(git rev-parse HEAD:x),x && t=$(git write-tree) && git update-ref refs/heads/main $(echo x | git -c user.name=A -c user.email=a@example.org commit-tree -p HEAD $t) && rm $i")
	if err != nil {
		t.Fatal(err, out)
	}
	ctx := context.Background()
	if err := s.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	packed := 0
	for round := range 60 {
		var parents [2]Hash
		for i := range parents {
			parents[i] = put(t, s, name(), fmt.Sprint(round, i))
		}
		v, err := s.At(parents[r.IntN(2)])
		if err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for range r.IntN(6) {
			if files[name()] = fmt.Appendf(nil, "%d of %d\n", round, r.IntN(100)); r.IntN(3) == 0 {
				files[name()] = nil
			}
		}
		switch round % 10 {
		case 7:
			files["x"] = []byte("no script\n")
		case 8:
			files["dir"] = []byte("a file where a folder was\n")
		case 9:
			files["dir/inner"], files["dir/no"] = nil, nil
		}
		j := join{parents, v.tree, files, time.Now().Unix() - int64(round)*1e6, "join: both\n\nBagpipe-Agent: bagpipe join\n"}
		here, err := j.pack(ctx, s.repo)
		imported, errImport := j.byGit(ctx, s.repo, v.commit != parents[0])
		switch {
		case errImport != nil:
			t.Fatal(errImport)
		case errors.Is(err, errByGit):
			if round%10 < 7 || round%10 > 8 {
				t.Errorf("round %d is left to git: %v", round, err)
			}
			continue
		case err != nil:
			t.Fatal(err)
		case here != imported:
			t.Errorf("round %d: %s, not %s:\n%s\n%s", round, here, imported, git(t, root, "cat-file", "-p", here.String()), git(t, root, "cat-file", "-p", imported.String()))
		}
		packed++
	}
	if packed < 40 {
		t.Errorf("%d joins of 60 were packed", packed)
	}
	last, err := s.Tip()
	if err != nil {
		t.Fatal(err)
	}
	alone, err := join{[2]Hash{put(t, s, "items/p", "1"), last.commit}, last.tree, map[string][]byte{"items/q": []byte("2")}, 1, "join\n"}.pack(ctx, s.repo) // git did not write it
	if err != nil {
		t.Fatal(err)
	}
	if pinned := git(t, root, "rev-parse", joinedRef); pinned != alone.String() {
		t.Errorf("%s is kept, not %s", pinned, alone)
	}
	git(t, root, "repack", "-adq")
	if said := git(t, root, "cat-file", "-t", alone.String()); strings.TrimSpace(said) != "commit" {
		t.Error(said)
	}
	if left, _ := filepath.Glob(filepath.Join(root, ".git", "objects", "pack", "*.keep")); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
	fsck(t, root)
}
