package folder

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A program that says more than a log holds cannot fill the disk.
func TestALogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "step.log")
	l := NewStepLog(path)
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for range maxLog/len(chunk) + 2 {
		if n, err := l.Write(chunk); n != len(chunk) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) != maxLog+len(cutLog) || !bytes.HasSuffix(data, []byte(cutLog)) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
