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

	Server []byte `json:"server,omitempty"` // the authority of a NATS server that is not Bagpipe's
	Plain  bool   `json:"plain,omitempty"`  // such a server, on this machine, without TLS
	Means
}

// Means are how a NATS server is told who comes that is not Bagpipe's own, but for the seed: files.
type Means struct {
	Creds   string `json:"creds,omitempty"`
	NKey    string `json:"nkey,omitempty"`
	Token   string `json:"token,omitempty"`
	Cert    string `json:"cert,omitempty"`
	CertKey string `json:"certKey,omitempty"`
}

// BrokerKey is the file by which a broker runs: its certificate, and who the engine is.
type BrokerKey struct {
	Schema      int    `json:"schema"`
	Authority   []byte `json:"authority"` // all in PEM
	Certificate []byte `json:"certificate"`
	Secret      []byte `json:"secret"`
	Engine      string `json:"engine"`  // its public key
	Cluster     string `json:"cluster"` // what brokers tell each other
}

// DecodeBrokerKey reads the file of a broker.
func DecodeBrokerKey(data []byte) (k BrokerKey, err error) {
	if err := json.Unmarshal(data, &k); err != nil {
		return k, err
	}
	if k.Schema > KeySchema {
		return k, fmt.Errorf("schema %d is newer than this program", k.Schema)
	}
	if k.Engine == "" || k.Cluster == "" || len(k.Certificate) == 0 {
		return k, errors.New("it is no file of a broker")
	}
	return k, nil
}

// TLS is how a broker listens, and how it comes to others: both sides prove that they are of the
// authority.
func (k BrokerKey) TLS() (clients, routes *tls.Config, err error) {
	pair, err := tls.X509KeyPair(k.Certificate, k.Secret)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(k.Authority) {
		return nil, nil, errors.New("the authority is no certificate")
	}
	clients = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	routes = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		ServerName: ServerName, MinVersion: tls.VersionTLS13}
	return clients, routes, nil
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

// ServerTLS trusts the NATS server's authority: the key's, or another that it names. It is nil for a server
// without TLS.
func (k Key) ServerTLS() (*tls.Config, error) {
	config, err := k.TLS()
	if err != nil || k.Plain {
		return nil, err
	}
	if len(k.Server) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(k.Server) {
			return nil, errors.New("the server's authority is no certificate")
		}
		config.RootCAs, config.ServerName = pool, ""
	}
	return config, nil
}

// TLS trusts the key's authority alone.
func (k Key) TLS() (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(k.Authority) {
		return nil, errors.New("the key's authority is no certificate")
	}
	return &tls.Config{RootCAs: pool, ServerName: ServerName, MinVersion: tls.VersionTLS13}, nil
}
