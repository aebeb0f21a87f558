package target

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"bagpipe/layout"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// server is a backend on an SFTP server. The rules are:
//
//   - no host is talked to whose key is not in the file of known hosts;
//   - a file that is there shorter than ours is gone on with, and judged when it is read back;
//   - a file is synced where the server offers fsync@openssh.com;
//   - a connection that is lost is made anew by the next call, by the known hosts and the key as they are then.
type server struct {
	name   layout.Name
	config Config

	mu     sync.Mutex // guards what follows
	conn   *ssh.Client
	client *sftp.Client
	made   map[string]bool // folders that are there
}

const (
	sftpStreams = 4
	dialTimeout = 30 * time.Second
	idleTimeout = 5 * time.Minute // a server that says nothing for so long is away
	sendAtOnce  = 1 << 20         // bytes of a file that are on their way together
	fsyncName   = "fsync@openssh.com"
	renameName  = "posix-rename@openssh.com"
)

func openSFTP(name layout.Name, c Config, used func() (bool, error)) (*server, error) {
	s := &server{name: name, config: c, made: map[string]bool{}}
	return s, s.look(used)
}

// login says who logs in, how, and which keys the host may have.
func (s *server) login() (*ssh.ClientConfig, error) {
	known, err := knownhosts.New(s.config.KnownHosts)
	if err != nil {
		return nil, &Down{fmt.Errorf("read the known hosts: %w", err)}
	}
	auth, err := s.authentication()
	if err != nil {
		return nil, err
	}
	kinds, err := keyKinds(known, s.config.address())
	return &ssh.ClientConfig{User: s.config.User, Auth: []ssh.AuthMethod{auth}, HostKeyCallback: known, HostKeyAlgorithms: kinds, Timeout: dialTimeout}, err
}

// keyKinds are the algorithms of the keys that are known of a host: a server with several keys is
// asked for one of these. None is known: any, and its key is refused.
func keyKinds(known ssh.HostKeyCallback, address string) (kinds []string, err error) {
	_, nobodys, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := ssh.NewPublicKey(nobodys.Public())
	if err != nil {
		return nil, err
	}
	var other *knownhosts.KeyError
	if !errors.As(known(address, &net.TCPAddr{IP: net.IPv4zero}, key), &other) {
		return nil, nil
	}
	for _, w := range other.Want {
		kind := w.Key.Type()
		if kind == ssh.KeyAlgoRSA {
			kinds = append(kinds, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// authentication is by the key's file or the agent.
func (s *server) authentication() (ssh.AuthMethod, error) {
	if s.config.Key == "" {
		return ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			c, err := net.Dial("unix", os.Getenv("SSH_AUTH_SOCK"))
			if err != nil {
				return nil, fmt.Errorf("the target has no key:, and there is no agent: %w", err)
			}
			return agent.NewClient(c).Signers() // the connection lives as long as its signers
		}), nil
	}
	pem, err := os.ReadFile(s.config.Key)
	if err != nil {
		return nil, &Down{err}
	}
	hidden, err := s.config.readSecrets(s.name)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(pem)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, []byte(hidden.Passphrase))
	}
	if err != nil {
		return nil, &Down{fmt.Errorf("read the key %s: %w", layout.EncodePath(s.config.Key), err)}
	}
	return ssh.PublicKeys(signer), nil
}

// look finds the target's folder, by the rules of a folder here.
func (s *server) look(used func() (bool, error)) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	mark := s.at(layout.StoreFile)
	_, there := c.Lstat(s.config.Path) // first: it may be made meanwhile
	if _, err := c.Lstat(mark); err == nil {
		return nil
	}
	if !errors.Is(there, fs.ErrNotExist) {
		return errors.Join(&Down{fmt.Errorf("the folder %s has no %s: is it mounted there? If it is a new target, make that file in it, empty", layout.EncodePath(s.config.Path), layout.StoreFile)}, s.close())
	}
	if err := mayMake(s.config.Path, used); err != nil {
		return errors.Join(err, s.close())
	}
	return s.failed(s.makeMarked(c, mark))
}

func (s *server) at(name string) string { return path.Join(s.config.Path, name) }

// dial gives the connection, or makes it.
func (s *server) dial() (*sftp.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	login, err := s.login()
	if err != nil {
		return nil, err
	}
	address := s.config.address()
	raw, err := net.DialTimeout("tcp", address, dialTimeout)
	if err != nil {
		return nil, &Down{err}
	}
	conn, channels, requests, err := ssh.NewClientConn(&idle{raw}, address, login)
	if err != nil {
		return nil, &Down{errors.Join(err, raw.Close())}
	}
	s.conn = ssh.NewClient(conn, channels, requests)
	s.client, err = sftp.NewClient(s.conn, sftp.UseConcurrentWrites(true))
	if err != nil {
		s.client = nil
		return nil, &Down{errors.Join(err, s.conn.Close())}
	}
	return s.client, nil
}

// idle is a connection that ends when nothing came, or went, for long.
type idle struct{ net.Conn }

func (i *idle) Write(b []byte) (int, error) {
	if err := i.SetWriteDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return i.Conn.Write(b)
}

func (i *idle) Read(b []byte) (int, error) {
	if err := i.SetReadDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return i.Conn.Read(b)
}

func (s *server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return nil
	}
	err := errors.Join(s.client.Close(), s.conn.Close())
	s.client = nil
	clear(s.made)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (s *server) traits() traits {
	return traits{renames: true, streams: cmp.Or(s.config.Streams, sftpStreams)}
}

// failed gives SFTP's errors their meaning. All but what is not there, or is there, says
// that the target is down: a full disk has no code of its own.
func (s *server) failed(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.Is(err, context.Canceled) {
		return err
	}
	var answer *sftp.StatusError
	var wrong *Damage
	switch {
	case errors.As(err, &wrong):
		return err
	case !errors.As(err, &answer) && !errors.Is(err, fs.ErrPermission): // the connection is of no more use
		err = errors.Join(err, s.close())
	}
	return &Down{err}
}

// with works on the server.
func (s *server) with(do func(*sftp.Client) error) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	return s.failed(do(c))
}

func (s *server) open(_ context.Context, name string, offset int64) (r reader, err error) {
	err = s.with(func(c *sftp.Client) error {
		info, err := c.Lstat(s.at(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			if above, aerr := c.Lstat(s.at(path.Dir(name))); aerr == nil && !above.IsDir() {
				return damage("%s is no folder", layout.EncodePath(path.Dir(name)))
			}
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return damage("%s is no regular file", layout.EncodePath(name))
		}
		f, err := c.Open(s.at(name))
		if err != nil {
			return err
		}
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			return errors.Join(err, f.Close())
		}
		r = &serverReader{f, s}
		return nil
	})
	return r, err
}

// serverReader gives the errors of a read their meaning.
type serverReader struct {
	reader
	s *server
}

func (r *serverReader) Read(b []byte) (int, error) {
	n, err := r.reader.Read(b)
	if err == io.EOF { // an EOF of the connection is wrapped
		return n, err
	}
	return n, r.s.failed(err)
}

func (r *serverReader) Close() error { return r.s.failed(r.reader.Close()) }

// makeAll makes a folder and those above it. A folder that another stream makes just now makes
// MkdirAll fail, once for each level at most.
func makeAll(c *sftp.Client, dir string) error {
	for range strings.Count(dir, "/") {
		if c.MkdirAll(dir) == nil {
			return nil
		}
	}
	return c.MkdirAll(dir)
}

// folder makes the folder that a file goes into.
func (s *server) folder(c *sftp.Client, dir string) error {
	s.mu.Lock()
	made := s.made[dir]
	s.mu.Unlock()
	if made {
		return nil
	}
	if err := makeAll(c, dir); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.made) > 100_000 {
		clear(s.made)
	}
	s.made[dir] = true
	return nil
}

func (s *server) write(ctx context.Context, name string, f file) error {
	return s.with(func(c *sftp.Client) (err error) {
		at := s.at(name)
		if err := s.folder(c, path.Dir(at)); err != nil {
			return err
		}
		flags, offset := os.O_WRONLY|os.O_CREATE|os.O_TRUNC, int64(0)
		if info, err := c.Lstat(at); err == nil {
			if !info.Mode().IsRegular() {
				return damage("%s is no regular file", layout.EncodePath(name))
			}
			if info.Size() < f.size {
				flags, offset = os.O_WRONLY, info.Size()
			}
		}
		in, err := told(f.open(offset))(f.tell)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, in.Close()) }()
		out, err := c.OpenFile(at, flags)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		if _, err := out.Seek(offset, io.SeekStart); err != nil {
			return err
		}
		// Not out.ReadFrom: it forgets that the last packet was refused, as on a full disk.
		buffer := make([]byte, max(1, min(f.size-offset, sendAtOnce)))
		if _, err := io.CopyBuffer(struct{ io.Writer }{out}, &reading{in, func(b []byte) (int, error) {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			return in.Read(b)
		}}, buffer); err != nil {
			return err
		}
		if _, offered := c.HasExtension(fsyncName); offered {
			return out.Sync()
		}
		return nil
	})
}

// poor says which extensions the server lacks.
func (s *server) poor() (lacks []string) {
	c, err := s.dial()
	if err != nil {
		return nil
	}
	if _, offered := c.HasExtension(fsyncName); !offered {
		lacks = append(lacks, "the server offers no "+fsyncName+": files sent last may be lost when its power is cut")
	}
	if _, offered := c.HasExtension(renameName); !offered {
		lacks = append(lacks, "the server offers no "+renameName+": a file that is replaced is gone for a moment")
	}
	return lacks
}

func (s *server) version(context.Context, string) (string, error) { return "", nil }

// settle has nothing to do: each file is synced when it is written, and SFTP has no word for
// folders.
func (s *server) settle(context.Context, string) error { return nil }

func (s *server) rename(_ context.Context, from, to string) error {
	return s.with(func(c *sftp.Client) error {
		if _, err := c.Lstat(s.at(to)); err == nil {
			return fs.ErrExist
		}
		if err := s.folder(c, path.Dir(s.at(to))); err != nil {
			return err
		}
		s.mu.Lock()
		clear(s.made)
		s.mu.Unlock()
		return c.Rename(s.at(from), s.at(to))
	})
}

func (s *server) remove(_ context.Context, name string) error {
	return s.with(func(c *sftp.Client) error {
		s.mu.Lock()
		clear(s.made)
		s.mu.Unlock()
		info, err := c.Lstat(s.at(name))
		if err == nil && info.IsDir() {
			err = c.RemoveAll(s.at(name))
		} else if err == nil { // a link, too, which RemoveAll would follow
			err = c.Remove(s.at(name))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// replace renames over what is there, where the server offers it; elsewhere there is a
// moment without the file, unless it is the same: another engine may rename its folder just then.
func (s *server) replace(ctx context.Context, name string, data []byte) error {
	part := staged(name)
	err := s.remove(ctx, part)
	if err == nil {
		err = s.write(ctx, part, file{size: int64(len(data)), open: func(offset int64) (reader, error) {
			return io.NopCloser(bytes.NewReader(data[offset:])), nil
		}})
	}
	if err != nil {
		return err
	}
	rename := (*sftp.Client).PosixRename
	err = s.with(func(c *sftp.Client) error {
		if _, offered := c.HasExtension(renameName); !offered {
			rename = (*sftp.Client).Rename
			if _, err := c.Lstat(s.at(name)); err == nil {
				return fs.ErrExist
			}
		}
		return rename(c, s.at(part), s.at(name))
	})
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if there, err := readAll(ctx, s, name); err == nil && bytes.Equal(there, data) {
		return s.remove(ctx, part)
	}
	return s.with(func(c *sftp.Client) error {
		if err := c.Remove(s.at(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return rename(c, s.at(part), s.at(name))
	})
}
