package repo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/config"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// InitialBranch is the branch of a repository that Make makes.
const InitialBranch = "refs/heads/main"

// Make writes what git init --bare would. HEAD comes last: without HEAD Git does not take
// the folder for a repository, and the next Make begins again.
func Make(fsys disk.FS, root string) error {
	git := filepath.Join(root, layout.RepositoryDir)
	for _, dir := range []string{"objects/pack", "objects/info", "refs/heads", "refs/tags", "info"} {
		if err := disk.MkdirAllFS(fsys, filepath.Join(git, filepath.FromSlash(dir)), 0o755); err != nil {
			return err
		}
	}
	if _, err := fsys.Lstat(filepath.Join(git, "HEAD")); err == nil {
		return nil
	}
	text, err := initialConfig()
	if err != nil {
		return err
	}
	for _, f := range [][2]string{
		{"config", string(text)},
		{"description", "A Bagpipe workspace: work items and their execution metadata.\n"},
		{"HEAD", "ref: " + InitialBranch + "\n"},
	} {
		if err := disk.WriteFileFS(fsys, filepath.Join(git, f[0]), "", []byte(f[1]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Configure gives a bare repository the configuration that Make does.
func Configure(git string) error {
	text, err := initialConfig()
	if err != nil {
		return err
	}
	for _, f := range [][2]string{{"config", string(text)}, {"HEAD", "ref: " + InitialBranch + "\n"}} {
		if err := disk.WriteFile(filepath.Join(git, f[0]), []byte(f[1]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// initialConfig is the configuration of a new repository: bare, never packed by git on
// its own, no push that rewrites history, every move logged.
func initialConfig() ([]byte, error) {
	c := config.NewConfig()
	c.Core.IsBare = true
	c.Init.DefaultBranch = "main"
	for _, o := range [][3]string{
		{"core", "repositoryformatversion", "0"},
		{"core", "filemode", "true"},
		{"core", "logAllRefUpdates", "true"},
		{"receive", "denyNonFastForwards", "true"},
		{"receive", "denyDeletes", "true"},
		{"receive", "fsckObjects", "true"},
		{"receive", "hideRefs", "refs/replace"}, // one that replaces itself breaks every git command
		{"transfer", "unpackLimit", "1"},        // pushes stay packs, which maintenance joins
		{"gc", "auto", "0"},
		{"maintenance", "auto", "false"},
	} {
		c.Raw.Section(o[0]).SetOption(o[1], o[2])
	}
	return c.Marshal()
}

// Odd lists what of a repository's configuration is not as Make writes it.
func Odd(git string) (odd []string, err error) {
	text, err := os.ReadFile(filepath.Join(git, "config"))
	if err != nil {
		return nil, err
	}
	is, err := config.ReadConfig(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	wanted, err := initialConfig()
	if err != nil {
		return nil, err
	}
	want, err := config.ReadConfig(bytes.NewReader(wanted))
	if err != nil {
		return nil, err
	}
	for _, section := range want.Raw.Sections {
		for _, option := range section.Options {
			if got := is.Raw.Section(section.Name).Option(option.Key); got != option.Value {
				odd = append(odd, fmt.Sprintf("%s.%s is %q, and init makes it %q", section.Name, option.Key, got, option.Value))
			}
		}
	}
	return odd, nil
}

// NotBare is a repository with a checkout: one that was cloned, or was made bare no more.
type NotBare struct {
	Git    string
	Origin string // that it was cloned from; empty: it is no clone
}

func (e *NotBare) Error() string {
	return e.Git + " is not bare: want bare = true in section [core] of its config"
}

// checkConfig refuses a repository that a store cannot work on.
func (r *Repo) checkConfig(clone bool) error {
	name := filepath.Join(r.Git, "config")
	text, err := r.FS.ReadFile(name)
	if err != nil {
		return fmt.Errorf("no repository: %w", err)
	}
	c, err := config.ReadConfig(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if !c.Core.IsBare && !clone {
		bad := &NotBare{Git: r.Git}
		if from := c.Remotes["origin"]; from != nil && len(from.URLs) > 0 {
			bad.Origin = from.URLs[0]
		}
		return bad
	}
	if format := c.Raw.Section("extensions").Option("objectformat"); format != "" && format != "sha1" {
		return fmt.Errorf("%s: object format %s is not supported", r.Git, format)
	}
	return nil
}

// Head gives the branch that HEAD names.
func (r *Repo) Head() (string, error) {
	data, err := r.FS.ReadFile(filepath.Join(r.Git, "HEAD"))
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: ")
	if !ok || !strings.HasPrefix(name, "refs/heads/") || strings.Contains(name, "..") {
		return "", fmt.Errorf("%s: HEAD names no branch", r.Git)
	}
	return name, nil
}

// SetHead makes HEAD name a branch. A crash leaves the old HEAD or the new one.
func (r *Repo) SetHead(branch string) error {
	r.Branch = branch
	return disk.WriteFileFS(r.FS, filepath.Join(r.Git, "HEAD"), "", []byte("ref: "+branch+"\n"), 0o644)
}
