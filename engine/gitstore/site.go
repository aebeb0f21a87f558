package gitstore

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/go-git/go-git/v5/config"

	"bagpipe/layout"
)

// section is where Bagpipe keeps its own in a repository's configuration.
const section = "bagpipe"

// ownConfig gives what the repository of the workspace root says in that section; nothing
// where there is none.
func ownConfig(root, key string) string {
	f, err := os.Open(filepath.Join(root, layout.RepositoryDir, "config"))
	if err != nil {
		return ""
	}
	defer f.Close()
	c, err := config.ReadConfig(f)
	if err != nil {
		return ""
	}
	return c.Raw.Section(section).Option(key)
}

// SiteOf is the name of the workspace root among those that share its history, and whether it
// was begun as a copy; "": it has none.
func SiteOf(root string) (name string, clone bool) {
	return ownConfig(root, "site"), ownConfig(root, "clone") == "true"
}

// SiteMark is the mark that came with the name.
func SiteMark(root string) string { return ownConfig(root, "siteMark") }

// SigningOf says which commits of the workspace root are signed (all, or of each group the
// last, or none), and by which key, as Git is configured.
func SigningOf(root string) (which, key string) {
	which = ownConfig(root, "sign")
	for _, c := range configs(root) {
		if key = c.Raw.Section("user").Option("signingkey"); key != "" {
			break
		}
	}
	return which, key
}

// What SigningOf answers, and Configure is told.
const (
	SignGroups = "group"
	SignAll    = "all"
)

// ConfigureKey has git, too, sign by an SSH key of the workspace at root.
func ConfigureKey(ctx context.Context, root, key string) error {
	for _, kv := range [][2]string{{"gpg.format", "ssh"}, {"user.signingKey", key}} {
		if _, err := gitSays(ctx, root, nil, "config", kv[0], kv[1]); err != nil {
			return err
		}
	}
	return nil
}

// ConfigureClone sets the key clone of a repository that has not got its name yet.
func ConfigureClone(ctx context.Context, git string) error {
	return exec.CommandContext(ctx, "git", "--git-dir="+git, "config", section+".clone", "true").Run()
}

// Configure sets one of Bagpipe's own keys: site, siteMark, clone or sign.
func Configure(ctx context.Context, root, key, value string) error {
	_, err := gitSays(ctx, root, nil, "config", section+"."+key, value)
	return err // an empty value is none
}
