package clamd

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// The verdicts on a file.
const (
	Clean      = "clean"
	Found      = "found"
	NotScanned = "not-scanned"
)

const (
	maxStream = 2<<30 - 1
	chunk     = 128 << 10
	maxReply  = 4 << 10
)

// exceeded begins the name that clamd gives to what its limits made it leave out.
const exceeded = "Heuristics.Limits.Exceeded"

// Client asks one clamd.
type Client struct {
	Address string        // unix:/run/clamav/clamd.ctl, or host:port
	Time    time.Duration // for one file; 0: five minutes
}

func (c Client) time() time.Duration { return cmp.Or(c.Time, 5*time.Minute) }

// Answer is the verdict on a file. Text is the name of what was found, or why the file was
// not scanned.
type Answer struct {
	Verdict string `json:"verdict"`
	Text    string `json:"text,omitempty"`
}

func (c Client) dial(ctx context.Context) (net.Conn, error) {
	network, address := "tcp", c.Address
	if path, ok := strings.CutPrefix(c.Address, "unix:"); ok {
		network, address = "unix", path
	}
	d := net.Dialer{Timeout: 10 * time.Second}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("clamd: %w", err)
	}
	if err := conn.SetDeadline(time.Now().Add(c.time())); err != nil { // sockets know the wall's clock alone
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Version asks which engine and signatures clamd has. An error says that it is not there.
func (c Client) Version(ctx context.Context) (string, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, "zVERSION\x00"); err != nil {
		return "", fmt.Errorf("clamd: %w", err)
	}
	said, err := reply(conn)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", fmt.Errorf("clamd at %s took the connection and did not answer within %v", c.Address, c.time())
	case err != nil:
		return "", fmt.Errorf("clamd: %w", err)
	}
	if !strings.HasPrefix(said, "ClamAV ") {
		return "", fmt.Errorf("clamd: %s answers %q", c.Address, said)
	}
	return said, nil
}

// reply reads up to the byte that ends an answer; an answer without it was cut short.
func reply(r io.Reader) (string, error) {
	text, err := bufio.NewReaderSize(io.LimitReader(r, maxReply), maxReply).ReadString(0)
	if err != nil {
		return "", fmt.Errorf("it hung up, or went on, after %q: %w", clip(text), err)
	}
	return strings.TrimSpace(strings.TrimSuffix(text, "\x00")), nil
}

func clip(s string) string { return s[:min(len(s), 100)] }

// Scan sends n bytes. Its error is that of ctx or of reading; what clamd does wrong is an
// answer.
func (c Client) Scan(ctx context.Context, r io.Reader, n int64) (Answer, error) {
	if n > maxStream {
		return Answer{NotScanned, "larger than the 2 GiB that clamd takes"}, nil
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return Answer{NotScanned, err.Error()}, ctx.Err()
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	sent, err := send(conn, r)
	var broken *readError
	if errors.As(err, &broken) {
		return Answer{}, broken.err
	}
	// clamd answers and hangs up in the middle where its limit is passed: the answer says so.
	said, rerr := reply(conn)
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err()
	case rerr != nil && (errors.Is(rerr, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)):
		return Answer{NotScanned, fmt.Sprintf("clamd at %s took longer than %v for this file, %d of its %d bytes sent; the parameter time gives it more", c.Address, c.time(), sent, n)}, nil
	case rerr != nil && err != nil:
		return Answer{NotScanned, fmt.Sprintf("clamd took %d of %d bytes: %v", sent, n, err)}, nil
	case rerr != nil:
		return Answer{NotScanned, "clamd: " + rerr.Error()}, nil
	}
	return verdict(said, err == nil && sent == n), nil
}

// verdict reads clamd's answer. Clean counts only when all was sent.
func verdict(said string, whole bool) Answer {
	text, ok := strings.CutPrefix(said, "stream: ")
	virus, found := strings.CutSuffix(text, " FOUND")
	switch {
	case ok && found && strings.HasPrefix(virus, exceeded):
		return Answer{NotScanned, "beyond clamd's limits: " + virus}
	case ok && found && virus != "":
		return Answer{Found, virus}
	case ok && text == "OK" && whole:
		return Answer{Verdict: Clean}
	}
	return Answer{NotScanned, fmt.Sprintf("clamd answers %q", clip(said))}
}

// mostNested is how deep clamd opens archives within archives at most, whatever its MaxRecursion.
const mostNested = 100

// Hides says why clamd's OK does not mean that it looked at all of a file; "": it means that. Without
// AlertExceedsMax clamd calls clean what its limits made it leave out. Nothing but a stream
// that passes one of them shows that.
func (c Client) Hides(ctx context.Context) (why string, err error) {
	data, err := nested(mostNested + 10)
	if err != nil {
		return "", err
	}
	a, err := c.Scan(ctx, bytes.NewReader(data), int64(len(data)))
	if err != nil || a.Verdict != Clean {
		return "", err
	}
	return fmt.Sprintf("clamd at %s calls clean what it leaves out beyond its limits: its configuration needs AlertExceedsMax yes and ScanArchive yes", c.Address), nil
}

// nested is an archive in an archive, and so on.
func nested(levels int) ([]byte, error) {
	data := []byte("the innermost")
	for range levels {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, err := z.CreateHeader(&zip.FileHeader{Name: "a", Method: zip.Store})
		if err == nil {
			_, err = w.Write(data)
		}
		if err = errors.Join(err, z.Close()); err != nil {
			return nil, err
		}
		data = b.Bytes()
	}
	return data, nil
}

type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

// send writes the bytes in chunks, each with its length before it, and the empty chunk
// that ends them.
func send(w io.Writer, r io.Reader) (sent int64, err error) {
	if _, err := io.WriteString(w, "zINSTREAM\x00"); err != nil {
		return 0, err
	}
	b := make([]byte, 4+chunk)
	for {
		n, rerr := io.ReadFull(r, b[4:])
		if n > 0 {
			binary.BigEndian.PutUint32(b, uint32(n))
			if _, err := w.Write(b[:4+n]); err != nil {
				return sent, err
			}
			sent += int64(n)
		}
		switch rerr {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			_, err := w.Write(make([]byte, 4))
			return sent, err
		default:
			return sent, &readError{rerr}
		}
	}
}
