package notices

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"strings"
	"time"

	"bagpipe/engine/notice"
)

// PartlyError tells that a mail went to some of those it was for. It is not sent to them again;
// Later are those whom the server refused for now alone (RFC 5321, 4.2.1: 4yz).
type PartlyError struct{ Refused, Later []string }

func (e *PartlyError) Error() string {
	return "the mail server took the mail, but not for " + strings.Join(e.Refused, "; ")
}

// mail sends a digest by a server that speaks TLS, and by no other, to some of those whom the wish names.
func (t *Teller) mail(ctx context.Context, n *notice.Wish, to []string, d Digest) (err error) {
	m := n.Mail
	trust, err := t.trust(n)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(m.Server)
	if err != nil {
		return err
	}
	trust.ServerName = host
	password, err := m.Password.Read(t.ledger.Root)
	if err != nil {
		return err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.Server)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // what waits for the server ends with an error
	defer stop()
	if port == "465" {
		conn = tls.Client(conn, trust)
	}
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	defer func() { _ = c.Close() }() // after Quit it is closed already
	if port != "465" {
		if can, _ := c.Extension("STARTTLS"); !can {
			return fmt.Errorf("%s offers no TLS", m.Server)
		}
		if err := c.StartTLS(trust); err != nil {
			return err
		}
	}
	if m.User != "" {
		if err := c.Auth(smtp.PlainAuth("", m.User, password, host)); err != nil {
			return err
		}
	}
	return deliver(c, m, to, letter(m, d))
}

// deliver hands a letter to the server, for those whom it takes one for.
func deliver(c *smtp.Client, m *notice.Mail, all []string, text []byte) error {
	if err := c.Mail(bare(m.From)); err != nil {
		return err
	}
	var refused, later []string
	for _, to := range all {
		err := c.Rcpt(bare(to))
		if err == nil {
			continue
		}
		refused = append(refused, to+": "+err.Error())
		var answer *textproto.Error
		if errors.As(err, &answer) && answer.Code/100 == 4 {
			later = append(later, to)
		}
	}
	if len(refused) == len(all) {
		return fmt.Errorf("the mail server refused everybody: %s", strings.Join(refused, "; "))
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil { // from then on the server has it
		return err
	}
	_ = c.Quit() // it has it all the same
	if len(refused) > 0 {
		return &PartlyError{refused, later}
	}
	return nil
}

// bare is the address without a name; the settings have checked it.
func bare(address string) string {
	a, err := mail.ParseAddress(address)
	if err != nil {
		return address
	}
	return a.Address
}

// letter is a digest as mail (RFC 5322), its identifier that of the digest.
func letter(m *notice.Mail, d Digest) []byte {
	var out bytes.Buffer
	domain := "bagpipe.invalid"
	if _, host, ok := strings.Cut(bare(m.From), "@"); ok {
		domain = host
	}
	for _, line := range [][2]string{{"From", m.From}, {"To", strings.Join(m.To, ", ")}, {"Subject", mime.QEncoding.Encode("utf-8", "bagpipe: "+d.Text)},
		{"Date", d.At.Format(time.RFC1123Z)}, {"Message-ID", "<" + d.ID + "@" + domain + ">"}, {"Auto-Submitted", "auto-generated"}, {"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"}, {"Content-Transfer-Encoding", "quoted-printable"}} {
		fmt.Fprintf(&out, "%s: %s\r\n", line[0], line[1])
	}
	out.WriteString("\r\n")
	w := quotedprintable.NewWriter(&out)
	_, _ = w.Write([]byte(strings.Join(d.Lines(), "\r\n") + "\r\n")) // memory does not fail
	_ = w.Close()
	return out.Bytes()
}
