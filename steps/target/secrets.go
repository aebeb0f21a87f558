package target

import (
	"fmt"
	"os"
	"strings"

	"bagpipe/layout"

	"github.com/goccy/go-yaml"
)

// secrets are never printed: a value's String is empty.
type secrets struct {
	AccessKey    secret `yaml:"accessKey"`
	SecretKey    secret `yaml:"secretKey"`
	SessionToken secret `yaml:"sessionToken"`
	Passphrase   secret `yaml:"passphrase"`
	Token        secret `yaml:"token"`
}

type secret string

func (secret) String() string   { return "…" }
func (secret) GoString() string { return "…" }

// readSecrets reads a target's secrets from its file, or the environment.
func readSecrets(name layout.Name, file string) (s secrets, err error) {
	if file == "" {
		prefix := "BAGPIPE_" + strings.Map(capital, string(name)) + "_"
		for key, to := range map[string]*secret{"ACCESS_KEY": &s.AccessKey, "SECRET_KEY": &s.SecretKey, "SESSION_TOKEN": &s.SessionToken, "PASSPHRASE": &s.Passphrase, "TOKEN": &s.Token} {
			*to = secret(os.Getenv(prefix + key))
		}
		return s, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return s, &Down{fmt.Errorf("read the target's secrets: %w", err)}
	}
	if info.Mode().Perm()&0o077 != 0 {
		return s, &Down{fmt.Errorf("read the target's secrets: %s may be read by others than its owner", layout.EncodePath(file))}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return s, &Down{fmt.Errorf("read the target's secrets: %w", err)}
	}
	if yaml.UnmarshalWithOptions(data, &s, yaml.Strict()) != nil { // its text may show a secret
		return s, &Down{fmt.Errorf("read the target's secrets: %s is not YAML with accessKey, secretKey, sessionToken and passphrase alone", layout.EncodePath(file))}
	}
	return s, nil
}

func capital(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return r - 'a' + 'A'
	case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return r
	}
	return '_'
}

// Token is what a target of kind url is asked with; "": it asks for none. It comes from the
// file of secrets, token:, or from BAGPIPE_NAME_TOKEN.
func Token(name layout.Name, file string) (string, error) {
	s, err := readSecrets(name, file)
	return string(s.Token), err
}
