package bus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine/remote/wire"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// foreign is a server as its makers have it, which knows its users as its options say.
func foreign(t *testing.T, o *server.Options) string {
	t.Helper()
	o.Host, o.Port, o.JetStream, o.StoreDir, o.NoSigs, o.NoLog, o.SyncAlways = "127.0.0.1", server.RANDOM_PORT, true, t.TempDir(), true, true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(startTime) {
		t.Fatal("the server does not listen")
	}
	return "nats://" + s.Addr().String()
}

func kept(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// pairFor makes a certificate of an authority, and its key, in PEM; without one it is the authority.
func pairFor(t *testing.T, name string, by *tls.Certificate) (certificate, secret []byte, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true, IsCA: by == nil}
	parent, signer := made, any(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, made, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, secret = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: own})
	if pair, err = tls.X509KeyPair(certificate, secret); err != nil {
		t.Fatal(err)
	}
	return certificate, secret, pair
}

// credsOf sets a server up that takes the users of an operator's account, and makes one of them.
func credsOf(t *testing.T, o *server.Options) (creds []byte) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	operator, err := nkeys.CreateOperator()
	must(err)
	public, err := operator.PublicKey()
	must(err)
	accounts := &server.MemAccResolver{}
	account := func(name string, more func(*jwt.AccountClaims)) (nkeys.KeyPair, string) {
		pair, err := nkeys.CreateAccount()
		must(err)
		id, err := pair.PublicKey()
		must(err)
		c := jwt.NewAccountClaims(id)
		c.Name = name
		more(c)
		token, err := c.Encode(operator)
		must(err)
		must(accounts.Store(id, token))
		return pair, id
	}
	claims := jwt.NewOperatorClaims(public)
	_, system := account("SYS", func(*jwt.AccountClaims) {})
	archive, _ := account("ARCHIVE", func(c *jwt.AccountClaims) {
		c.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	})
	o.TrustedOperators, o.SystemAccount, o.AccountResolver = []*jwt.OperatorClaims{claims}, system, accounts
	user, err := nkeys.CreateUser()
	must(err)
	id, err := user.PublicKey()
	must(err)
	token, err := jwt.NewUserClaims(id).Encode(archive)
	must(err)
	seed, err := user.Seed()
	must(err)
	creds, err = jwt.FormatUserConfig(token, seed)
	must(err)
	return creds
}

// Engine and worker come to a server that is not Bagpipe's by credentials, an nkey, a token or a client certificate;
// whoever has none, or another, is refused.
func TestMeansOfAServerThatIsNotOurs(t *testing.T) {
	seed, public, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	stranger, _, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	_, _, authority := pairFor(t, "authority", nil)
	_, _, its := pairFor(t, "server", &authority)
	certificate, secret, _ := pairFor(t, "engine", &authority)
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	byCreds := &server.Options{}
	creds := credsOf(t, byCreds)
	for name, c := range map[string]struct {
		at    *server.Options
		means wire.Means
		tls   *tls.Config
	}{
		"nkey":  {&server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}}, wire.Means{NKey: kept(t, "seed", []byte(seed+"\n"))}, nil},
		"token": {&server.Options{Authorization: "a word"}, wire.Means{Token: kept(t, "token", []byte("a word\n"))}, nil},
		"creds": {byCreds, wire.Means{Creds: kept(t, "creds", creds)}, nil},
		"certificate": {&server.Options{TLS: true, TLSVerify: true, TLSMap: true, TLSTimeout: 5, Users: []*server.User{{Username: "CN=engine"}},
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{its}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}},
			wire.Means{Cert: kept(t, "cert", certificate), CertKey: kept(t, "key", secret)}, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}},
	} {
		t.Run(name, func(t *testing.T) {
			url := foreign(t, c.at)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out := Outside{URLs: []string{url}, TLS: c.tls, Seed: stranger, Means: c.means}
			e, err := DialEngine(ctx, out, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			class := wire.Want{Robot: "ocr"}.Class()
			err = errors.Join(e.Begin(ctx, "one"), e.Class(ctx, class))
			if err == nil {
				_, err = e.Publish(ctx, []Message{{class, []byte("it")}})
			}
			if err != nil {
				t.Fatal(err)
			}
			w, err := Dial(DialOptions{Outside: out, Name: "w", Changed: func(string) {}})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if p, ok, err := w.Pull(ctx, class, 5*time.Second); err != nil || !ok || string(p.Data()) != "it" {
				t.Errorf("pulled %v, %v", ok, err)
			}
			out.Means = wire.Means{}
			if e, err := DialEngine(ctx, out, slog.New(slog.DiscardHandler)); err == nil {
				e.Close()
				t.Error("a stranger comes in")
			}
		})
	}
}
