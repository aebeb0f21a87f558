package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/cmd/bagpipe/internal/screen"

	"github.com/tidwall/gjson"
)

// wrong are the real inputs that RFC 8493 calls invalid, and what the message of
// the step validate must hold. All others must be deposited.
var wrong = map[string]string{
	"example.edu.sample_bad_oxum.tar":           "bag-info.txt",
	"example.edu.sample_missing_data_file.tar":  "missing",
	"example.edu.sample_no_data_dir.tar":        "no-payload",
	"example.edu.sample_no_md5_manifest.tar":    "no-manifest",
	"example.edu.tagsample_bad.tar":             "missing",
	"test.edu.btr_bad_checksums.tar":            "mismatch",
	"test.edu.btr_bad_extraneous_file.tar":      "unlisted",
	"test.edu.btr_bad_missing_payload_file.tar": "missing",
	"missing-required-files":                    "missing",
	"payload-checksum-mismatch":                 "mismatch",
	"tagmanifest-checksum-mismatch":             "mismatch",
}

// Real bags and objects, made elsewhere, through add and run.
func TestRealInputs(t *testing.T) {
	t.Parallel()
	root := filepath.Join(moduleRoot(t), "..", "shared", "fixtures")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the real bags are not here: %v", err)
	}
	b := newBench(t)
	args, inputs := []string{"add"}, map[string]string{}
	for _, pattern := range []string{"bags-btr/*.*", "deposits/*", "gis/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		b.must(err)
		for _, f := range found {
			if base := filepath.Base(f); !strings.HasPrefix(base, "README") && base != "LICENSE" {
				inputs[base] = f
				args = append(args, f)
			}
		}
	}
	if len(inputs) < 25 {
		t.Fatalf("only %d inputs in %s", len(inputs), root)
	}
	b.ok(args...)
	b.start("run").code(int(screen.ExitSomeFailed))
	for name := range inputs {
		b.realInput(name)
	}
	b.deposits(len(inputs) - len(wrong))
	if err := leftBehind(b.dir); err != nil {
		t.Error(err)
	}
	if out := b.git("fsck", "--strict", "--no-dangling"); out != "" {
		t.Errorf("git fsck: %s", out)
	}
}

func (b *bench) realInput(name string) {
	b.t.Helper()
	show := b.ok("show", name, "--json")
	status := gjson.Get(show, "workflows.0.status").String()
	validate := gjson.Get(show, `workflows.0.steps.#(step=="validate")`)
	message := validate.Get("attempts.0.message").String()
	want, isWrong := wrong[name]
	switch {
	case isWrong && (validate.Get("status").String() != "failed" || validate.Get("attempts.0.kind").String() != "content" || !strings.Contains(message, want)):
		b.t.Errorf("%s: validate is %s: %q; want failed with %q", name, validate.Get("status"), message, want)
	case !isWrong && status != "completed":
		b.t.Errorf("%s: is %s: %s", name, status, failing(show))
	}
}

func failing(show string) string {
	s := gjson.Get(show, `workflows.0.steps.#(status=="failed")`)
	return fmt.Sprintf("%s: %s", s.Get("step"), s.Get("attempts.0.message"))
}
