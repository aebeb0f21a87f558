package gitstore

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bagpipe/layout"
)

// The rules are: in a clone with a checkout the git program makes the commits, of the paths of
// one edit alone, with the person's identity, hooks and signing. A path that the person has
// changed and not committed is refused. A commit that git refuses leaves the paths as they
// were; a crash leaves changes that git status shows.

// IsClone reports whether root is a clone of a workspace: a repository with a checkout and an
// origin, and none of the folders that make a workspace.
func IsClone(root string) bool { return CloneOf(root) != "" }

// CloneOf is the address that root is a clone of, without a password; empty: it is none.
func CloneOf(root string) string {
	if _, err := os.Lstat(filepath.Join(root, layout.StateDir)); err == nil {
		return ""
	}
	c := configs(root)
	if info, err := os.Stat(filepath.Join(root, layout.RepositoryDir, "config")); err != nil || info.IsDir() || len(c) == 0 {
		return ""
	}
	origin := c[0].Remotes["origin"]
	if c[0].Core.IsBare || origin == nil || len(origin.URLs) == 0 {
		return ""
	}
	return Redacted(origin.URLs[0])
}

func gitAt(ctx context.Context, root string, in []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS_REQUIRE=never", "LC_ALL=C")
	var out, wrong bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &wrong
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(wrong.Bytes()))
	}
	return out.Bytes(), nil
}

// ShowFile gives a file as it stands in a revision of the repository around the current folder.
func ShowFile(ctx context.Context, rev, path string) ([]byte, error) {
	return gitAt(ctx, ".", nil, "show", rev+":"+path)
}

// driver is the section of the merge driver that .gitattributes names.
const driver = "merge.bagpipe"

// InstallDriver has git join the records of a clone by a program, unless a driver is there and
// again is false.
func InstallDriver(ctx context.Context, root, program string, again bool) error {
	if _, err := gitAt(ctx, root, nil, "config", driver+".driver"); err == nil && !again {
		return nil
	}
	quoted := "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	for _, kv := range [][2]string{{"name", "Bagpipe's records are joined"}, {"driver", quoted + " merge-driver run %O %A %B %P"}} {
		if _, err := gitAt(ctx, root, nil, "config", driver+"."+kv[0], kv[1]); err != nil {
			return err
		}
	}
	return nil
}
