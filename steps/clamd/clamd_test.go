package clamd

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a clamd that does with a connection what serve does.
func fake(t *testing.T, serve func(net.Conn)) Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return Client{Address: l.Addr().String(), Time: 300 * time.Millisecond}
}

// take reads a stream as clamd does, up to most bytes.
func take(c net.Conn, most int) []byte {
	head := make([]byte, len("zINSTREAM\x00"))
	if _, err := io.ReadFull(c, head); err != nil || string(head) != "zINSTREAM\x00" {
		return nil
	}
	var all []byte
	for len(all) <= most {
		var n [4]byte
		if _, err := io.ReadFull(c, n[:]); err != nil || binary.BigEndian.Uint32(n[:]) == 0 {
			return all
		}
		b := make([]byte, binary.BigEndian.Uint32(n[:]))
		if _, err := io.ReadFull(c, b); err != nil {
			return nil
		}
		all = append(all, b...)
	}
	return all
}

func TestScan(t *testing.T) {
	data := bytes.Repeat([]byte("bag"), 100000)
	say := func(text string) func(net.Conn) {
		return func(c net.Conn) { take(c, 1<<20); io.WriteString(c, text) }
	}
	for _, c := range []struct {
		name    string
		serve   func(net.Conn)
		verdict string
		text    string
	}{
		{"clean", func(c net.Conn) {
			if bytes.Equal(take(c, 1<<20), data) {
				io.WriteString(c, "stream: OK\x00")
			}
		}, Clean, ""},
		{"found", say("stream: Eicar-Test-Signature FOUND\x00"), Found, "Eicar-Test-Signature"},
		{"beyond its limits", say("stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND\x00"), NotScanned, "Limits.Exceeded.MaxFileSize"},
		{"its limit", func(c net.Conn) { take(c, 1000); io.WriteString(c, "INSTREAM size limit exceeded. ERROR\x00") }, NotScanned, "clamd"},
		{"hangs up", func(c net.Conn) { take(c, 1000) }, NotScanned, "clamd"},
		{"hangs up at once", func(c net.Conn) {}, NotScanned, "clamd"},
		{"lies", say("everything is fine\x00"), NotScanned, `clamd answers "everything is fine"`},
		{"half an answer", say("stream: OK"), NotScanned, "hung up"},
		{"talks without end", func(c net.Conn) { take(c, 1<<20); c.Write(bytes.Repeat([]byte("x"), 100000)) }, NotScanned, "went on"},
		{"takes nothing", func(c net.Conn) { time.Sleep(500 * time.Millisecond) }, NotScanned, "took longer than 300ms"},
		{"silent", func(c net.Conn) { take(c, 1<<20); time.Sleep(500 * time.Millisecond) }, NotScanned, "took longer than 300ms for this file, 300000 of its 300000 bytes sent; the parameter time"},
	} {
		got, err := fake(t, c.serve).Scan(context.Background(), bytes.NewReader(data), int64(len(data)))
		if err != nil || got.Verdict != c.verdict || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestSilentIsNoHangingUp(t *testing.T) {
	_, err := fake(t, func(net.Conn) { time.Sleep(500 * time.Millisecond) }).Version(context.Background())
	if err == nil || !strings.Contains(err.Error(), "did not answer within 300ms") || strings.Contains(err.Error(), "hung up") {
		t.Error(err)
	}
}

func TestNotThere(t *testing.T) {
	c := Client{Address: "unix:/nowhere/clamd.ctl"}
	if _, err := c.Version(context.Background()); err == nil {
		t.Error("nobody answered")
	}
	if got, err := c.Scan(context.Background(), strings.NewReader("x"), 1); err != nil || got.Verdict != NotScanned {
		t.Errorf("%+v, %v", got, err)
	}
	if got, _ := c.Scan(context.Background(), nil, 3<<30); got.Verdict != NotScanned || !strings.Contains(got.Text, "2 GiB") {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Scan(ctx, strings.NewReader("x"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Only the whole of a file can be clean.
func TestVerdict(t *testing.T) {
	for said, want := range map[string]string{"stream: OK": NotScanned, "stream: X FOUND": Found, "stream:  FOUND": NotScanned, "OK": NotScanned, "": NotScanned} {
		if got := verdict(said, false); got.Verdict != want {
			t.Errorf("%q: %+v", said, got)
		}
	}
}

func FuzzVerdict(f *testing.F) {
	f.Add("stream: OK")
	f.Fuzz(func(t *testing.T, said string) {
		if got := verdict(said, true); got.Verdict == Clean && said != "stream: OK" {
			t.Errorf("%q is clean", said)
		}
	})
}
