package target

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"bagpipe/bags/files"
	"bagpipe/layout"
)

const (
	mostArguments = 64 << 10 // bytes of names a call; servers take at least twice as many
	aliveEvery    = time.Minute
)

// digests has the server run sha512sum, or that of another algorithm, where verify: remote asks for
// it. Names are quoted for its shell, and lines are told apart by their order: a name with a line
// end is escaped in them.
func (s *server) digests(ctx context.Context, dir string, names []string, a files.Algorithm, each func(i int, sum []byte) error) (does bool, err error) {
	if s.config.Verify != verifyRemote {
		return false, nil
	}
	for first := 0; first < len(names); {
		command, last := strings.Builder{}, first
		command.WriteString(string(a) + "sum")
		for ; last < len(names) && (last == first || command.Len() < mostArguments); last++ {
			command.WriteString(" '" + strings.ReplaceAll(s.at(path.Join(dir, names[last])), "'", `'\''`) + "'")
		}
		out, err := s.ask(ctx, command.String())
		if _, ended := err.(*ssh.ExitError); ended && len(out) == 0 && last-first > 1 {
			return false, nil // a file is not there, or not readable: the reading says which
		} else if ended {
			return s.wanting(ctx, path.Join(dir, names[first]), string(a), err)
		}
		if err != nil {
			return true, s.failed(err)
		}
		lines := bytes.SplitAfter(out, []byte("\n"))
		if len(lines) != last-first+1 {
			return true, &Down{fmt.Errorf("verify: remote: %ssum on the server gives %d lines for %d files", a, len(lines)-1, last-first)}
		}
		for i, line := range lines[:last-first] {
			text, _, _ := strings.Cut(strings.TrimPrefix(string(line), `\`), " ")
			sum, err := hex.DecodeString(text)
			if err != nil || len(sum) != a.New().Size() {
				return true, &Down{fmt.Errorf("verify: remote: %ssum on the server gives no digests", a)}
			}
			if err := each(first+i, sum); err != nil {
				return true, err
			}
		}
		first = last
	}
	return true, nil
}

// wanting tells a file that cannot be read, which the reading tells better, from a server without
// the program.
func (s *server) wanting(ctx context.Context, name, algorithm string, failed error) (does bool, err error) {
	r, err := s.open(ctx, name, 0)
	if err != nil {
		return true, err
	}
	if err := r.Close(); err != nil {
		return true, err
	}
	return true, &Down{fmt.Errorf("verify: remote: the server does not run %ssum: %w", algorithm, failed)}
}

// ask runs a program on the server. The connection is kept alive meanwhile, as a large file takes
// its time.
func (s *server) ask(ctx context.Context, command string) ([]byte, error) {
	if _, err := s.dial(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	session, err := conn.NewSession()
	if err != nil {
		return nil, err
	}
	defer session.Close() // which ends the program
	var out bytes.Buffer
	session.Stdout = &out
	if err := session.Start(command); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return out.Bytes(), err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
			if _, _, err := conn.SendRequest("keepalive@openssh.com", true, nil); err != nil {
				return nil, err
			}
		}
	}
}

func (s *server) list(ctx context.Context, dir string, deep bool, each func(string, int64) error) error {
	return s.with(func(c *sftp.Client) error { return s.walk(ctx, c, dir, "", deep, each, nil) })
}

func (s *server) survey(ctx context.Context, dir string) (survey, error) {
	found := survey{files: map[string]int64{}}
	each := func(name string, size int64) error {
		found.files[name] = size
		return nil
	}
	return found, s.with(func(c *sftp.Client) error { return s.walk(ctx, c, dir, "", true, each, &found) })
}

// walk lists files; links, pipes and empty folders are noted in found. Without found a link or pipe is damage.
func (s *server) walk(ctx context.Context, c *sftp.Client, dir, below string, deep bool, each func(string, int64) error, found *survey) error {
	if deep && below == "" && dir != "" { // a link leads elsewhere
		if info, err := c.Lstat(s.at(dir)); err == nil && !info.IsDir() {
			return damage("%s is no folder", layout.EncodePath(dir))
		}
	}
	entries, err := s.entries(ctx, c, path.Join(dir, below))
	if errors.Is(err, fs.ErrNotExist) && below == "" {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) == 0 && below != "" && found != nil {
		found.empty = append(found.empty, below)
	}
	for _, e := range entries {
		name := path.Join(below, e.Name())
		switch {
		case strings.Contains(e.Name(), "/") || e.Name() == "..":
			return damage("%s is no name", layout.EncodePath(e.Name()))
		case e.Mode().IsRegular():
			if err := each(name, e.Size()); err != nil {
				return err
			}
		case e.IsDir() && deep:
			if err := s.walk(ctx, c, dir, name, deep, each, found); err != nil {
				return err
			}
		case !e.IsDir() && found != nil:
			found.odd = append(found.odd, name)
		case !e.IsDir() && deep:
			return damage("%s is no regular file", layout.EncodePath(name))
		}
	}
	return nil
}

// entries lists a folder. What is none is damage.
func (s *server) entries(ctx context.Context, c *sftp.Client, dir string) ([]fs.FileInfo, error) {
	entries, err := c.ReadDirContext(ctx, s.at(dir))
	if err != nil {
		if info, lerr := c.Lstat(s.at(dir)); lerr == nil && !info.IsDir() {
			err = damage("%s is no folder", layout.EncodePath(dir))
		}
	}
	return entries, err
}

func (s *server) folders(ctx context.Context, dir string) (names []string, err error) {
	err = s.with(func(c *sftp.Client) error {
		entries, err := s.entries(ctx, c, dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		return err
	})
	return names, err
}
