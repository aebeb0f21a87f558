package steps

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// eicar is the text that scanners take for a virus, in two parts so that none takes this file for one.
const eicar = `X5O!P%@AP[4\PZX54(P^)7CC)7}$` + `EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*`

// clamdFor answers as clamd does to whoever sends the text above.
func clamdFor(t *testing.T) string {
	return clamdThat(t, func(c net.Conn, r *bufio.Reader) {
		said := "stream: OK\x00"
		if bytes.Contains(untilEmpty(r), []byte(eicar)) {
			said = "stream: Eicar-Test-Signature FOUND\x00"
		}
		_, _ = io.WriteString(c, said)
	})
}

func untilEmpty(r io.Reader) (all []byte) {
	for {
		var n [4]byte
		if _, err := io.ReadFull(r, n[:]); err != nil || n == [4]byte{} {
			return all
		}
		b := make([]byte, int(n[0])<<24|int(n[1])<<16|int(n[2])<<8|int(n[3]))
		if _, err := io.ReadFull(r, b); err != nil {
			return all
		}
		all = append(all, b...)
	}
}

func TestVirusScan(t *testing.T) {
	address := clamdFor(t)
	for text, found := range map[string]bool{"a letter": false, eicar: true} {
		c := &Call{Step: "virus-scan", With: map[string]any{"address": address}}
		c.Content, c.Scratch = t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(c.Content, "a.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		res, err := virusScan(context.Background(), c)
		if (err != nil) != found || found && (KindOf(err) != Content || !strings.Contains(err.Error(), "a.txt: Eicar")) {
			t.Errorf("%q: %+v, %v", text, res, err)
		}
		want := map[bool]string{false: "pass: 1 clean, 0 found, 0 not scanned", true: "fail: 0 clean, 1 found, 0 not scanned; found first: a.txt: Eicar-Test-Signature"}[found]
		if got := viruses(res); got != want {
			t.Errorf("the check of %q is %q, not %q", text, got, want)
		}
		report, rerr := os.ReadFile(filepath.Join(c.Scratch, "report", "virus-scan.json"))
		if rerr != nil || found != bytes.Contains(report, []byte(`"found"`)) {
			t.Errorf("%s, %v", report, rerr)
		}
	}
	c := &Call{With: map[string]any{"address": "unix:/nowhere/ctl"}}
	c.Content = t.TempDir()
	var gone *Unavailable
	res, err := virusScan(context.Background(), c)
	if !errors.As(err, &gone) || viruses(res) != "not-reached: no clamd answers" {
		t.Errorf("without a clamd: %+v, %v", res, err)
	}
	c.With["unavailable"] = "skip"
	res, err = virusScan(context.Background(), c)
	if err != nil || res.Status != Skipped || viruses(res) != "not-reached: no clamd answers" {
		t.Errorf("without a clamd, which may be: %+v, %v", res, err)
	}
	c.With["unavailable"] = "go on"
	if _, err := virusScan(context.Background(), c); err == nil || !strings.Contains(err.Error(), "want fail or skip") {
		t.Errorf("unavailable: go on: %v", err)
	}
}

// viruses is what a result says of the one check that it has.
func viruses(res Result) string {
	if len(res.Checks) != 1 || res.Checks[0].ID != "viruses" || res.Checks[0].Level != "total.usable" {
		return ""
	}
	return res.Checks[0].Result + ": " + res.Checks[0].Text
}

// A clamd that hangs up, lies or is silent makes no file clean: each is told of as not scanned, and fails the step
// where unscanned: fail is given.
func TestVirusScanWithoutAnswers(t *testing.T) {
	for name, answer := range map[string]func(net.Conn, *bufio.Reader){
		"hangs up":       func(c net.Conn, r *bufio.Reader) {},
		"half an answer": func(c net.Conn, r *bufio.Reader) { untilEmpty(r); _, _ = io.WriteString(c, "stream: OK") },
		"lies":           func(c net.Conn, r *bufio.Reader) { untilEmpty(r); _, _ = io.WriteString(c, "all is well\x00") },
		"is silent":      func(c net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) },
	} {
		address := clamdThat(t, answer)
		for _, strict := range []bool{false, true} {
			c := &Call{Step: "virus-scan", With: map[string]any{"address": address, "time": "200ms"}}
			if strict {
				c.With["unscanned"] = "fail"
			}
			c.Content, c.Scratch = t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(c.Content, "a.txt"), []byte("a letter"), 0o600); err != nil {
				t.Fatal(err)
			}
			res, err := virusScan(context.Background(), c)
			if (err != nil) != strict || strict && (KindOf(err) != System || !strings.Contains(err.Error(), "1 file not scanned, first: a.txt")) {
				t.Errorf("a clamd that %s: %v", name, err)
			}
			if got := viruses(res); !strings.HasPrefix(got, "not-reached: 0 clean, 0 found, 1 not scanned; not scanned first: a.txt: ") {
				t.Errorf("a clamd that %s: %s", name, got)
			}
			counts, _ := res.Metadata["viruses"].(map[string]any)
			if counts["clean"] != int64(0) || counts["notScanned"] != int64(1) {
				t.Errorf("a clamd that %s: %v", name, res.Metadata)
			}
			report, err := os.ReadFile(filepath.Join(c.Scratch, "report", "virus-scan.json"))
			if err != nil || !bytes.Contains(report, []byte(`"not-scanned"`)) || bytes.Contains(report, []byte(`"clean"`)) {
				t.Errorf("a clamd that %s: %s, %v", name, report, err)
			}
		}
	}
}

// A clamd that calls clean what its limits made it leave out makes no file clean; what it finds counts.
func TestVirusScanByAClamdThatHides(t *testing.T) {
	address := clamdOf(t, "stream: OK\x00", func(c net.Conn, r *bufio.Reader) {
		said := "stream: OK\x00"
		if bytes.Contains(untilEmpty(r), []byte(eicar)) {
			said = "stream: Eicar-Test-Signature FOUND\x00"
		}
		_, _ = io.WriteString(c, said)
	})
	for text, want := range map[string]string{"a letter": "not-reached: 0 clean, 0 found, 1 not scanned", eicar: "fail: 0 clean, 1 found, 0 not scanned"} {
		c := &Call{Step: "virus-scan", With: map[string]any{"address": address}}
		c.Content, c.Scratch = t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(c.Content, "a.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		res, _ := virusScan(t.Context(), c)
		if got := viruses(res); !strings.HasPrefix(got, want) || text != eicar && !strings.Contains(got, "AlertExceedsMax yes") {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// clamdThat tells its version, and answers a stream in a way of its own.
func clamdThat(t *testing.T, answer func(net.Conn, *bufio.Reader)) string {
	t.Helper()
	return clamdOf(t, "stream: Heuristics.Limits.Exceeded.MaxRecursion FOUND\x00", answer)
}

// clamdOf is clamdThat which answers so to what is beyond its limits.
func clamdOf(t *testing.T, probed string, answer func(net.Conn, *bufio.Reader)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ctl")
	l, err := net.Listen("unix", path)
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
			r := bufio.NewReader(c)
			if command, _ := r.ReadString(0); strings.HasPrefix(command, "zINSTREAM") {
				if head, _ := r.Peek(8); bytes.HasSuffix(head, []byte("PK\x03\x04")) { // asked for its limits
					untilEmpty(r)
					_, _ = io.WriteString(c, probed)
				} else {
					answer(c, r)
				}
			} else {
				_, _ = io.WriteString(c, "ClamAV 1.4.3/27000\x00")
			}
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "unix:" + path
}
