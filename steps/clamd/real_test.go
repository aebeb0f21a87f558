package clamd

import (
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A real clamd, with the one signature of the test file of EICAR, finds it, says of what is clean
// that it is, and takes no more than its limits; where it does not tell of these, Hides does.
func TestRealClamd(t *testing.T) {
	for _, tells := range []string{"yes", "no"} {
		t.Run("AlertExceedsMax "+tells, func(t *testing.T) { realClamd(t, tells) })
	}
}

func realClamd(t *testing.T, tells string) {
	program, err := exec.LookPath("clamd")
	if err != nil {
		t.Skip("clamd is not installed; testdata/tools.sh installs it where it can")
	}
	dir, err := os.MkdirTemp("", "clamd") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	// In two parts, so that nothing takes this file for it.
	eicar := `X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTI` + `VIRUS-TEST-FILE!$H+H*`
	for name, text := range map[string]string{
		"test.hdb":   fmt.Sprintf("%x:%d:Eicar-Test-Signature\n", md5.Sum([]byte(eicar)), len(eicar)),
		"clamd.conf": fmt.Sprintf("Foreground yes\nDatabaseDirectory %s\nLocalSocket %s/s\nStreamMaxLength 2M\nMaxFileSize 1M\nMaxRecursion 100\nAlertExceedsMax %s\n", dir, dir, tells),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	said := &bytes.Buffer{}
	cmd := exec.CommandContext(ctx, program, "-c", filepath.Join(dir, "clamd.conf"))
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer func() { stop(); <-ended }()
	c := Client{Address: "unix:" + dir + "/s"}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, err := c.Version(ctx); err != nil; _, err = c.Version(ctx) {
		select {
		case <-ended:
			t.Skipf("clamd does not run here: %s", said)
		case <-tick.C:
		}
	}
	hides, err := c.Hides(ctx)
	if err != nil || strings.Contains(hides, "AlertExceedsMax yes") != (tells == "no") {
		t.Errorf("Hides: %q, %v", hides, err)
	}
	beyond, why := map[string]string{"yes": NotScanned, "no": Clean}[tells], map[string]string{"yes": "Exceeded.MaxFileSize"}[tells]
	for _, one := range []struct{ data, verdict, text string }{
		{eicar, Found, "Eicar-Test-Signature"},
		{"a bag", Clean, ""},
		{strings.Repeat("bag\n", 1<<20), NotScanned, "limit"},
		{strings.Repeat("bag\n", 1<<18+1), beyond, why},
		{eicar + "x", Clean, ""},
	} {
		got, err := c.Scan(ctx, strings.NewReader(one.data), int64(len(one.data)))
		if err != nil || got.Verdict != one.verdict || !strings.Contains(got.Text, one.text) {
			t.Errorf("%d bytes: %+v, %v; want %s %s", len(one.data), got, err, one.verdict, one.text)
		}
	}
}
