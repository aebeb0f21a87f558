package bags

import (
	"os"
	"path/filepath"
	"testing"

	"bagpipe/bags/archive"
	"bagpipe/bags/finding"
)

// fixtures gives the folder of real bags made elsewhere, or skips.
func fixtures(t testing.TB, sub string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "fixtures", sub)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the real bags are not here: %v", err)
	}
	return dir
}

// Judged by RFC 8493 alone: several of these are wrong by a BagIt profile only.
func TestRealArchivedBags(t *testing.T) {
	dir := fixtures(t, "bags-btr")
	for _, c := range []struct {
		name            string
		complete, valid bool
		first           finding.Code
	}{
		{"example.edu.sample_bad_oxum.tar", false, false, finding.Oxum},
		{"example.edu.sample_good.tar", true, true, ""},
		{"example.edu.sample_good.zip", true, true, ""},
		{"example.edu.sample_missing_data_file.tar", false, false, finding.Missing},
		{"example.edu.sample_no_bag_info.tar", true, true, ""},
		{"example.edu.sample_no_data_dir.tar", false, false, finding.NoPayload},
		{"example.edu.sample_no_md5_manifest.tar", false, false, finding.NoManifest},
		{"example.edu.sample_wrong_folder_name.tar", true, true, ""},
		{"example.edu.tagsample_bad.tar", false, false, finding.Missing},
		{"example.edu.tagsample_good.tar", true, true, ""},
		{"example.edu.tagsample_good.tar.gz", true, true, ""},
		{"example.edu.tagsample_good.tgz", true, true, ""},
		{"test.edu.btr-glacier-deep-oh.tar", true, true, ""},
		{"test.edu.btr-wasabi-or.tar", true, true, ""},
		{"test.edu.btr_bad_checksums.tar", true, false, finding.Mismatch},
		{"test.edu.btr_bad_extraneous_file.tar", false, false, finding.Unlisted},
		{"test.edu.btr_bad_missing_payload_file.tar", false, false, finding.Missing},
		{"test.edu.btr_bad_missing_required_tags.tar", true, true, ""},
		{"test.edu.btr_good_sha256.tar", true, true, ""},
		{"test.edu.btr_good_sha512.tar", true, true, ""},
		{"test.edu.sample_illegal_control.tar", true, true, ""},
		{"virginia.edu.uva-lib_2278801.tar", true, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := t.TempDir()
			if _, err := archive.Extract(t.Context(), filepath.Join(dir, c.name), to, archive.ExtractOptions{}); err != nil {
				t.Fatal(err)
			}
			bag, ok, err := FindBag(to)
			if err != nil || !ok {
				t.Fatalf("no bag found: %v", err)
			}
			expectBag(t, bag, c.complete, c.valid, c.first)
		})
	}
}

func TestRealDeposits(t *testing.T) {
	dir := fixtures(t, "deposits")
	for _, c := range []struct {
		name            string
		complete, valid bool
		first           finding.Code
	}{
		{"xm152jw3650-etd", true, true, ""},
		{"cr123dt0367", true, true, ""},
		{"metadata-only-v1", true, true, ""},
		{"missing-required-files", false, false, finding.Missing},
		{"payload-checksum-mismatch", true, false, finding.Mismatch},
		{"tagmanifest-checksum-mismatch", true, false, finding.Mismatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			expectBag(t, filepath.Join(dir, c.name), c.complete, c.valid, c.first)
		})
	}
}

// expectBag checks both answers and the first error's code, "" for none.
func expectBag(t *testing.T, dir string, complete, valid bool, first finding.Code) Report {
	t.Helper()
	r, err := Validate(t.Context(), dir, ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, _ := r.FirstError()
	if r.Complete != complete || r.Valid != valid || f.Code != first {
		t.Errorf("complete %v, valid %v, first error %q; want %v, %v, %q\n%+v",
			r.Complete, r.Valid, f.Code, complete, valid, first, r.Findings)
	}
	return r
}
