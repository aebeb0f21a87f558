package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine/remote/wire"
)

// A cache that is full lets the files go that were used longest ago, whether they were kept or given then.
func TestTheCacheKeepsWhatIsUsed(t *testing.T) {
	item, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer item.Close()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := newCache(dir, 100)
	var files []wire.File
	for i := range 11 {
		data := fmt.Appendf(nil, "%010d", i)
		sum := sha256.Sum256(data)
		f := wire.File{Path: fmt.Sprint(i), Size: 10, SHA256: hex.EncodeToString(sum[:])}
		if err := item.WriteFile(f.Path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		if i == 10 {
			if !c.give(item, files[0]) {
				t.Error("the first is not there while there is room")
			}
			c = newCache(dir, 100) // as after a start
		}
		c.keep(item, f.Path, f)
		then := time.Now().Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(c.path(f.SHA256), then, then); err != nil {
			t.Fatal(err)
		}
	}
	for i, f := range files {
		if _, err := os.Stat(c.path(f.SHA256)); (err == nil) != (i != 1 && i != 2) {
			t.Errorf("file %d: %v", i, err)
		}
	}
	if c.size != 90 {
		t.Errorf("%d bytes are counted, 90 are there", c.size)
	}
}
