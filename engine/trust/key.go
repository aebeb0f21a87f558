package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Key signs: its secret is in a file, or in an agent.
type Key struct {
	public ssh.PublicKey
	own    ssh.Signer // nil: an agent has it
}

// OpenKey reads a key from a file: a secret one without a passphrase, or a public one, with
// or without .pub, whose secret an agent has. text may be the public key itself, key::….
func OpenKey(text string) (*Key, error) {
	if literal, is := strings.CutPrefix(text, "key::"); is || strings.HasPrefix(text, "ssh-") || strings.HasPrefix(text, "ecdsa-") {
		public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(literal))
		if err != nil {
			return nil, fmt.Errorf("read the key that signs: %w", err)
		}
		return &Key{public: public}, nil
	}
	data, err := os.ReadFile(text)
	if err != nil {
		return nil, fmt.Errorf("read the key that signs: %w", err)
	}
	if public, _, _, _, err := ssh.ParseAuthorizedKey(data); err == nil {
		return &Key{public: public}, nil
	}
	own, err := ssh.ParsePrivateKey(data)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		beside, errRead := os.ReadFile(text + ".pub")
		public, _, _, _, errParse := ssh.ParseAuthorizedKey(beside)
		if err := errors.Join(errRead, errParse); err != nil {
			return nil, fmt.Errorf("key %s has a passphrase, and its public part is not beside it for an agent: %w", text, err)
		}
		return &Key{public: public}, nil
	case err != nil:
		return nil, fmt.Errorf("%s is no SSH key: neither the secret nor the public part of one", text)
	}
	return &Key{public: own.PublicKey(), own: own}, nil
}

// Public is the public key, as allowed_signers has it.
func (k *Key) Public() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.public)))
}

// signer finds who has the secret.
func (k *Key) signer() (ssh.Signer, error) {
	if k.own != nil {
		return k.own, nil
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, fmt.Errorf("no agent has key %s: SSH_AUTH_SOCK is not set", ssh.FingerprintSHA256(k.public))
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("ask the agent for key %s: %w", ssh.FingerprintSHA256(k.public), err)
	}
	return &agentKey{k.public, conn, agent.NewClient(conn)}, nil
}

// agentKey signs once: its connection ends with that.
type agentKey struct {
	public ssh.PublicKey
	conn   net.Conn
	client agent.ExtendedAgent
}

func (a *agentKey) PublicKey() ssh.PublicKey { return a.public }

func (a *agentKey) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return a.sign(data, 0)
}

func (a *agentKey) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	if algorithm == ssh.KeyAlgoRSASHA512 {
		return a.sign(data, agent.SignatureFlagRsaSha512)
	}
	return a.sign(data, 0)
}

func (a *agentKey) sign(data []byte, flags agent.SignatureFlags) (sig *ssh.Signature, err error) {
	defer func() { err = errors.Join(err, a.conn.Close()) }()
	known, err := a.client.List()
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		if bytes.Equal(k.Blob, a.public.Marshal()) {
			return a.client.SignWithFlags(a.public, data, flags)
		}
	}
	return nil, errors.New("the agent does not have it")
}
