package bags

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The reference implementation, where a person has it: its bagit.py is in BAGIT_PY, as
// for the bench. It does not decode %25, so no name here has a percent sign.
func TestTheReferenceImplementationReadsOurBags(t *testing.T) {
	py := os.Getenv("BAGIT_PY")
	if py == "" {
		t.Skip("BAGIT_PY does not name a bagit.py")
	}
	python := tool(t, "python3")
	judge := func(dir string) error {
		out, err := exec.CommandContext(t.Context(), python, py, "--validate", dir).CombinedOutput()
		t.Logf("%s", out)
		return err
	}
	files := bag{"a.txt": "one", "d/größe.txt": "two", "d/ a  b ": "three", "line\nend": "four", "d/empty": ""}
	for _, as := range [][]Algorithm{{MD5}, {SHA1, SHA224}, {SHA256, SHA512}, {SHA384}} {
		payload := payloadFolder(t, files)
		dest := filepath.Join(t.TempDir(), "made")
		o := CreateOptions{Payload: payload, Dest: dest, Algorithms: as, Date: bagDate, Info: []Field{
			{"Contact-Name", "A. Nonymous"}, {"Contact-Name", "Ä. Ö."},
			{"External-Description", "so long a text that it is folded, and folded once more, as the lines of this file are not to be longer than 79 characters, all told"},
		}}
		if _, err := Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := judge(dest); err != nil {
			t.Errorf("%v: %v", as, err)
		}
		writeFile(t, filepath.Join(dest, "data/a.txt"), "ONE")
		if err := judge(dest); err == nil {
			t.Errorf("%v: a changed bag was found valid; this proves nothing", as)
		}
	}
}
