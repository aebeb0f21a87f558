package trust

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	magic     = "SSHSIG"
	namespace = "git"
	begin     = "-----BEGIN SSH SIGNATURE-----\n"
	end       = "-----END SSH SIGNATURE-----\n"
	width     = 70
)

// blob follows the magic in a signature.
type blob struct {
	Version   uint32
	Key       string
	Namespace string
	Reserved  string
	Hash      string
	Signature string
}

// signed follows the magic in what is signed.
type signed struct {
	Namespace string
	Reserved  string
	Hash      string
	Digest    string
}

// Sign signs a commit.
func (k *Key) Sign(payload []byte) (armored string, err error) {
	digest := sha512.Sum512(payload)
	message := append([]byte(magic), ssh.Marshal(signed{Namespace: namespace, Hash: "sha512", Digest: string(digest[:])})...)
	var sig *ssh.Signature
	signer, err := k.signer()
	if err != nil {
		return "", err
	}
	if by, ok := signer.(ssh.AlgorithmSigner); ok && signer.PublicKey().Type() == ssh.KeyAlgoRSA {
		sig, err = by.SignWithAlgorithm(rand.Reader, message, ssh.KeyAlgoRSASHA512)
	} else {
		sig, err = signer.Sign(rand.Reader, message)
	}
	if err != nil {
		return "", fmt.Errorf("sign with %s: %w", ssh.FingerprintSHA256(k.public), err)
	}
	data := append([]byte(magic), ssh.Marshal(blob{Version: 1, Key: string(k.public.Marshal()), Namespace: namespace, Hash: "sha512", Signature: string(ssh.Marshal(*sig))})...)
	var b strings.Builder
	b.WriteString(begin)
	for text := base64.StdEncoding.EncodeToString(data); text != ""; text = text[min(width, len(text)):] {
		b.WriteString(text[:min(width, len(text))] + "\n")
	}
	return b.String() + end, nil
}

// ErrBroken is a signature that is none, or of other bytes.
var ErrBroken = errors.New("it is no sound SSH signature of this commit")

// Verify checks a signature of a commit, and names the key that made it.
func Verify(payload []byte, armored string) (key ssh.PublicKey, err error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(armored), strings.TrimSpace(begin))
	text, ok2 := strings.CutSuffix(text, strings.TrimSpace(end))
	if !ok || !ok2 {
		return nil, ErrBroken
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil || len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return nil, ErrBroken
	}
	var s blob
	if err := ssh.Unmarshal(data[len(magic):], &s); err != nil || s.Version != 1 || s.Namespace != namespace {
		return nil, ErrBroken
	}
	if key, err = ssh.ParsePublicKey([]byte(s.Key)); err != nil {
		return nil, ErrBroken
	}
	var h hash.Hash
	switch s.Hash {
	case "sha256":
		h = sha256.New()
	case "sha512":
		h = sha512.New()
	default:
		return nil, ErrBroken
	}
	h.Write(payload)
	var sig ssh.Signature
	if err := ssh.Unmarshal([]byte(s.Signature), &sig); err != nil || sig.Format == ssh.KeyAlgoRSA {
		return nil, ErrBroken
	}
	message := append([]byte(magic), ssh.Marshal(signed{Namespace: s.Namespace, Reserved: s.Reserved, Hash: s.Hash, Digest: string(h.Sum(nil))})...)
	if key.Verify(message, &sig) != nil {
		return nil, ErrBroken
	}
	return key, nil
}

// SplitTag gives what of a tag a signature is of, and the signature, which stands behind it; "": it has none.
func SplitTag(tag []byte) (payload []byte, armored string) {
	at := bytes.LastIndex(tag, []byte(begin))
	if at < 0 {
		return tag, ""
	}
	return tag[:at], string(tag[at:])
}
