package wire

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"

	"bagpipe/layout"
)

// KeySchema is the newest form of a key's file.
const KeySchema = 1

// Key is the file by which a worker comes in: who it is, where the engine is, whose
// certificates it trusts, and its secret.
type Key struct {
	Schema    int         `json:"schema"`
	Name      layout.Name `json:"name"`
	URLs      []string    `json:"urls"`
	Authority []byte      `json:"authority"` // a certificate in PEM
	Seed      string      `json:"seed"`
}

// DecodeKey reads the file of a key.
func DecodeKey(data []byte) (k Key, err error) {
	if err := json.Unmarshal(data, &k); err != nil {
		return k, err
	}
	if k.Schema > KeySchema {
		return k, fmt.Errorf("schema %d is newer than this program", k.Schema)
	}
	if _, err := layout.ParseName(string(k.Name)); err != nil {
		return k, err
	}
	if k.Seed == "" || len(k.Authority) == 0 {
		return k, errors.New("it is no key of a worker")
	}
	return k, nil
}

// Encode gives the file.
func (k Key) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(k, "", "  ")
	return append(data, '\n'), err
}

// TLS trusts the key's authority alone.
func (k Key) TLS() (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(k.Authority) {
		return nil, errors.New("the key's authority is no certificate")
	}
	return &tls.Config{RootCAs: pool, ServerName: ServerName, MinVersion: tls.VersionTLS13}, nil
}
