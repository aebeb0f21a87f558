package layout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Secret says where a password or a key is, in YAML {env: NAME} or {file: PATH}. The secret
// itself stands in no settings, which are committed.
type Secret struct {
	File string `yaml:"file"`
	Env  string `yaml:"env"`
}

var errSecret = errors.New("expected {env: NAME} or {file: PATH}: settings are committed, and hold no secrets")

// UnmarshalYAML reads where the secret is. Its error does not show what stands there.
func (s *Secret) UnmarshalYAML(n ast.Node) error {
	values := pairs(n)
	if len(values) != 1 {
		return errSecret
	}
	value, is := values[0].Value.(*ast.StringNode)
	if !is || value.Value == "" {
		return errSecret
	}
	switch values[0].Key.String() {
	case "file":
		s.File = value.Value
	case "env":
		s.Env = value.Value
	default:
		return errSecret
	}
	return nil
}

// Read gives the secret; "" where none is named. A relative file is below root.
func (s Secret) Read(root string) (string, error) {
	switch {
	case s.Env != "":
		if text := os.Getenv(s.Env); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("read a secret: the environment has no %s", s.Env)
	case s.File != "":
		return readSecret(s.Below(root).File)
	}
	return "", nil
}

// Below gives a relative file its place below root.
func (s Secret) Below(root string) Secret {
	if s.File != "" && !filepath.IsAbs(s.File) {
		s.File = filepath.Join(root, s.File)
	}
	return s
}

// maxSecret is far above any key.
const maxSecret = 1 << 20

func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	switch {
	case !info.Mode().IsRegular() || info.Size() > maxSecret:
		return "", fmt.Errorf("read a secret: %s is no small file", EncodePath(path))
	case info.Mode().Perm()&0o007 != 0:
		return "", fmt.Errorf("read a secret: %s can be read by every account; chmod o= %[1]s", EncodePath(path))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("read a secret: %s is empty", EncodePath(path))
	}
	return text, nil
}

// IsSecretName reports whether the name of a variable says that its value is a secret.
func IsSecretName(name string) bool {
	upper := "_" + strings.ToUpper(name)
	for _, end := range []string{"PASSWORD", "PASSWD", "PASSPHRASE", "_PASS", "SSHPASS", "MYSQL_PWD", "_SECRET", "_TOKEN", "_API_KEY", "_APIKEY", "_SECRET_KEY", "_ACCESS_KEY", "_PRIVATE_KEY", "_CREDENTIALS"} {
		if strings.HasSuffix(upper, end) {
			return true
		}
	}
	return false
}
