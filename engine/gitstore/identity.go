package gitstore

import (
	"cmp"
	"os"
	"os/user"
	"path/filepath"

	"github.com/go-git/go-git/v5/config"
)

// Identity is the person at work, as Git would find it from dir: the
// environment, the repository's configuration, the person's own, the system's;
// and, where none of them says, the user and host of the process.
func Identity(dir string) Signature {
	who := Signature{Name: os.Getenv("GIT_AUTHOR_NAME"), Email: os.Getenv("GIT_AUTHOR_EMAIL")}
	for _, c := range configs(dir) {
		who.Name = cmp.Or(who.Name, c.Author.Name, c.User.Name)
		who.Email = cmp.Or(who.Email, c.Author.Email, c.User.Email)
	}
	login := "unknown"
	if u, err := user.Current(); err == nil {
		login = u.Username
		who.Name = cmp.Or(who.Name, u.Name)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	who.Name = cmp.Or(who.Name, login)
	who.Email = cmp.Or(who.Email, login+"@"+host)
	return who
}

// configs gives the readable configurations, the nearest first; an unreadable one counts as
// absent.
func configs(dir string) (all []*config.Config) {
	for d, err := filepath.Abs(dir); err == nil; d = filepath.Dir(d) {
		if f, err := os.Open(filepath.Join(d, ".git", "config")); err == nil {
			c, err := config.ReadConfig(f)
			_ = f.Close()
			if err == nil {
				all = append(all, c)
			}
			break
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	for _, scope := range []config.Scope{config.GlobalScope, config.SystemScope} {
		if c, err := config.LoadConfig(scope); err == nil {
			all = append(all, c)
		}
	}
	return all
}
