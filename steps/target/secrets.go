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

// Keys say where single secrets are; what they do not name is in the file of secrets:, or in
// the environment under the target's name.
type Keys struct {
	AccessKey    layout.Secret `yaml:"accessKey"`    // of s3
	SecretKey    layout.Secret `yaml:"secretKey"`    // of s3
	SessionToken layout.Secret `yaml:"sessionToken"` // of s3
	Passphrase   layout.Secret `yaml:"passphrase"`   // of sftp: the key's
	Token        layout.Secret `yaml:"token"`        // of url
}

// Below gives relative files their places below root.
func (k *Keys) Below(root string) {
	for _, s := range []*layout.Secret{&k.AccessKey, &k.SecretKey, &k.SessionToken, &k.Passphrase, &k.Token} {
		*s = s.Below(root)
	}
}

// check says which key the kind of target has no use for.
func (k Keys) check(kind string) (key string, err error) {
	for _, is := range []struct {
		key, kind string
		secret    layout.Secret
	}{{"accessKey", KindS3, k.AccessKey}, {"secretKey", KindS3, k.SecretKey}, {"sessionToken", KindS3, k.SessionToken}, {"passphrase", KindSFTP, k.Passphrase}, {"token", KindURL, k.Token}} {
		if is.secret != (layout.Secret{}) && is.kind != kind {
			return is.key, fmt.Errorf("%s is of kind %s, not of %s", is.key, is.kind, kind)
		}
	}
	return "", nil
}

// readSecrets reads a target's secrets: each from where the settings say that it is, else from
// the target's file of them, or the environment.
func (c Config) readSecrets(name layout.Name) (s secrets, err error) {
	if s, err = sharedSecrets(name, c.Secrets); err != nil {
		return s, err
	}
	for _, one := range []struct {
		from layout.Secret
		to   *secret
	}{{c.AccessKey, &s.AccessKey}, {c.SecretKey, &s.SecretKey}, {c.SessionToken, &s.SessionToken}, {c.Passphrase, &s.Passphrase}, {c.Token, &s.Token}} {
		text, err := one.from.Read("")
		if err != nil {
			return s, &Down{err}
		}
		if text != "" {
			*one.to = secret(text)
		}
	}
	return s, nil
}

func sharedSecrets(name layout.Name, file string) (s secrets, err error) {
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

// ReadToken reads what a target of kind url is asked with; "": it asks for none.
func (c Config) ReadToken(name layout.Name) (string, error) {
	s, err := c.readSecrets(name)
	return string(s.Token), err
}
