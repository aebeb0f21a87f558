package notices

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/feed"
	"bagpipe/engine/handover"
	"bagpipe/engine/ledger"
	"bagpipe/engine/notice"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// within is how long a try may take.
const within = 30 * time.Second

// handOver gives a digest to whom it is for.
func (t *Teller) handOver(ctx context.Context, n *notice.Wish, k *kept, d Digest) error {
	data, err := layout.EncodeJSON(d)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it took more than %s", within))
	defer cancel()
	switch {
	case n.URL != "":
		err = t.post(ctx, n, d, data)
	case n.Mail != nil:
		to := n.Mail.To
		if p := k.Pending; p != nil && len(p.To) > 0 {
			to = p.To
		}
		err = t.mail(ctx, n, to, d)
	case n.Atom != "":
		err = t.toAtom(n, k, d)
	default:
		err = handover.Run(ctx, t.ledger.Root, n.Command, []string{"BAGPIPE_NOTICE=" + d.ID, "BAGPIPE_NEWS=" + d.Text}, data)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// trust is the configuration of TLS with the certificates of ca:.
func (t *Teller) trust(n *notice.Wish) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if n.CA == "" {
		return c, nil
	}
	data, err := disk.ReadFile(settings.Below(t.ledger.Root, n.CA))
	if err != nil {
		return nil, fmt.Errorf("read ca: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("no certificate in %s", n.CA)
	}
	return c, nil
}

// Signature signs a message as Standard Webhooks say.
func Signature(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// post sends a digest to an address. No redirection is followed, and of the answer only the
// beginning is read.
func (t *Teller) post(ctx context.Context, n *notice.Wish, d Digest, data []byte) error {
	trust, err := t.trust(n)
	if err != nil {
		return err
	}
	secret, err := n.Secret.Read(t.ledger.Root)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL, bytes.NewReader(data))
	if err != nil {
		return err
	}
	at := t.ledger.Now()
	req.Header.Set("webhook-id", d.ID)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	if secret != "" {
		key, err := notice.SigningKey(secret)
		if err != nil {
			return err
		}
		req.Header.Set("webhook-signature", Signature(key, d.ID, at, data))
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: trust},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return handover.Post(client, req)
}

// toAtom writes the last digests as a feed (RFC 4287), by rename.
func (t *Teller) toAtom(n *notice.Wish, k *kept, d Digest) error {
	if len(k.Sent) == 0 || k.Sent[0].ID != d.ID {
		k.Sent = append([]Digest{d}, k.Sent[:min(len(k.Sent), inAtom-1)]...)
	}
	rows := make([]feed.Row, len(k.Sent))
	for i := range k.Sent {
		s := &k.Sent[i]
		rows[i] = feed.Row{Post: feed.Post{ID: s.ID, Date: s.At, Type: "bagpipe.notice", Data: map[string]any{"person": ledger.CommitterName}},
			Summary: map[string]string{"text": s.Text, "atom": "<pre>" + html.EscapeString(strings.Join(s.Lines(), "\n")) + "</pre>"}}
	}
	var out bytes.Buffer
	if err := feed.WriteAtom(&out, "notices "+d.Name, rows, d.At); err != nil {
		return err
	}
	path := settings.Below(t.ledger.Root, n.Atom)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return disk.WriteFile(path, out.Bytes(), 0o666)
}
