package bags

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
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
	inside := bag{"a.txt": "one", "d/größe.txt": "two", "d/ a  b ": "three", "line\nend": "four", "d/empty": ""}
	for _, as := range [][]files.Algorithm{{files.MD5}, {files.SHA1, files.SHA224}, {files.SHA256, files.SHA512}, {files.SHA384}} {
		payload := payloadFolder(t, inside)
		dest := filepath.Join(t.TempDir(), "made")
		o := CreateOptions{Payload: payload, Dest: dest, Algorithms: as, Date: bagDate, Info: []tagfile.Field{
			{Label: "Contact-Name", Value: "A. Nonymous"}, {Label: "Contact-Name", Value: "Ä. Ö."},
			{Label: "External-Description", Value: "so long a text that it is folded, and folded once more, as the lines of this file are not to be longer than 79 characters, all told"},
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
