package bags

import (
	"os"
	"path/filepath"
	"testing"

	"bagpipe/bags/archive"
)

// A killed Create or Serialize leaves a hidden folder, and the next takes it away,
// wherever the kill was: before the lock, at work, or while it was tidying up.
func TestCreateAndSerializeRemoveWhatACrashLeft(t *testing.T) {
	bag := goodBag().write(t)
	for name, call := range map[string]func(dest string) error{
		"create": func(dest string) error {
			_, err := Create(t.Context(), CreateOptions{Payload: filepath.Join(bag, "data"), Dest: dest})
			return err
		},
		"serialize": func(dest string) error {
			_, err := Serialize(t.Context(), bag, dest, SerializeOptions{Format: archive.Tar, NoSync: true})
			return err
		},
	} {
		dir := t.TempDir()
		dest := filepath.Join(dir, "x")
		if err := os.MkdirAll(filepath.Join(dir, ".x.bagpipe-1/made/data"), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, ".x.bagpipe-1/lock"), "")
		if err := os.Mkdir(filepath.Join(dir, ".x.bagpipe-1234"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := call(dest); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		only(t, dir, "x")
	}
}
