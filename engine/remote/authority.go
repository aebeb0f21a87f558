package remote

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout/disk"
)

// The authority is this workspace's own: workers trust it and no other, so a certificate of
// it holds at whatever address the engine is reached.
const (
	authorityPEM = "workers-ca.pem"
	authorityKey = "workers-ca.key"
	longLife     = 50 * 365 * 24 * time.Hour
)

// Authority gives the certificate of the workspace's authority, in PEM, and makes the
// authority where there is none. dir is the folder of the accounts.
func Authority(dir string, now time.Time) (certificate []byte, err error) {
	certificate, err = os.ReadFile(filepath.Join(dir, authorityPEM))
	if !errors.Is(err, fs.ErrNotExist) {
		return certificate, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Bagpipe workers"}, NotBefore: now.Add(-48 * time.Hour),
		NotAfter: now.Add(longLife), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// A crash between the two leaves a key without a certificate, which the next call replaces.
	if err := disk.WriteFile(filepath.Join(dir, authorityKey), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		return nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate, disk.WriteFile(filepath.Join(dir, authorityPEM), certificate, 0o644)
}

// serverTLS makes a certificate of the authority for one run of the engine.
func serverTLS(dir string, now time.Time) (*tls.Config, error) {
	certificate, secret, err := certify(dir, now)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, secret)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, nil
}

// certify makes a certificate of the authority, and its key, in PEM.
func certify(dir string, now time.Time) (certificate, secret []byte, err error) {
	authority, err := Authority(dir, now)
	if err != nil {
		return nil, nil, err
	}
	own, err := os.ReadFile(filepath.Join(dir, authorityKey))
	if err != nil {
		return nil, nil, err
	}
	pair, err := tls.X509KeyPair(authority, own)
	if err != nil {
		return nil, nil, fmt.Errorf("read the workers' authority in %s: %w", dir, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: wire.ServerName}, DNSNames: []string{wire.ServerName},
		NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(longLife), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}} // brokers come to each other
	der, err := x509.CreateCertificate(rand.Reader, template, pair.Leaf, key.Public(), pair.PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	data, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: data}), nil
}
