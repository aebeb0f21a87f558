package targettest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"bagpipe/steps/target"
)

// SFTP is a server in this process, for the whole file system of this machine.
type SFTP struct {
	target.SFTPConfig
	stop func()
}

// Stop ends the server and its connections.
func (s *SFTP) Stop() { s.stop() }

// NewSFTP starts a server with fresh keys; it ends with the test.
func NewSFTP(t *testing.T) *SFTP {
	t.Helper()
	dir := t.TempDir()
	host, hostPEM := newKey(t)
	client, clientPEM := newKey(t)
	_ = hostPEM
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &SFTP{SFTPConfig: target.SFTPConfig{Host: l.Addr().String(), User: "archive", KnownHosts: filepath.Join(dir, "known"), Key: filepath.Join(dir, "key")}}
	must(t, os.WriteFile(s.KnownHosts, []byte(knownhosts.Line([]string{s.Host}, host.PublicKey())+"\n"), 0o644))
	must(t, os.WriteFile(s.Key, clientPEM, 0o600))
	login := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, errors.New("another key")
		}
		return nil, nil
	}}
	login.AddHostKey(host)
	s.stop = serve(l, login)
	t.Cleanup(s.stop)
	return s
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	must(t, err)
	return signer, pem.EncodeToMemory(block)
}

// serve serves until it is stopped.
func serve(l net.Listener, login *ssh.ServerConfig) (stop func()) {
	var mu sync.Mutex // guards open
	open := map[net.Conn]bool{}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			done.Go(func() { answer(c, login) })
		}
	})
	return sync.OnceFunc(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		done.Wait()
	})
}

// answer serves one connection.
func answer(raw net.Conn, login *ssh.ServerConfig) {
	defer raw.Close()
	_, channels, requests, err := ssh.NewServerConn(raw, login)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		ch, asked, err := c.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range asked {
				_ = r.Reply(r.Type == "subsystem", nil) // the connection is gone
			}
		}()
		s, err := sftp.NewServer(ch)
		if err != nil {
			return
		}
		if err := s.Serve(); err != nil && !errors.Is(err, io.EOF) {
			return
		}
		ch.Close()
	}
}
