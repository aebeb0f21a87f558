package target

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"bagpipe/bags/files"
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
