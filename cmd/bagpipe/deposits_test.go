package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"bagpipe/steps/target/targettest"
)

// Real bags, a thesis, GIS data and a BTR bag, stand on an OCFL root, OpenSSH's server and an S3
// server. One copy of each is damaged and mended; all but one target go; an empty workspace is
// filled from that one: the same bytes, the same records.
func TestRealBagsComeBack(t *testing.T) {
	t.Parallel()
	fixtures, err := filepath.Abs("../../../shared/fixtures")
	if err == nil {
		_, err = os.Stat(fixtures)
	}
	if err != nil {
		t.Skip(err)
	}
	s3, sshd := targettest.NewS3(t, false), targettest.NewSSHD(t)
	for _, left := range []string{"vault", "offsite", "cloud"} {
		t.Run(left, func(t *testing.T) {
			comesBack(t, fixtures, left, s3, fmt.Sprintf(`targets:
  vault: {kind: folder, layout: ocfl, path: ../vault}
  offsite: {kind: sftp, layout: tar, host: %q, user: %s, knownHosts: %s, key: %s, path: TOP/offsite, verify: remote}
  cloud: {kind: s3, endpoint: %q, bucket: %s, style: path, secrets: %s, prefix: %s}
`, sshd.Host, sshd.User, sshd.KnownHosts, sshd.Key, s3.Endpoint, s3.Bucket, s3.Secrets, left))
		})
	}
}

func comesBack(t *testing.T, fixtures, left string, s3 *targettest.S3, targets string) {
	b := newBench(t)
	settings := func(names string) string {
		return "schema: 1\ninbox: {collections: open, quiet: 10ms, rescan: 1s, duplicates: allow}\n" + strings.ReplaceAll(targets, "TOP", b.top) +
			"defaults: {workflow: accession, targets: [" + names + "]}\n"
	}
	b.write("ws/bagpipe.yaml", settings("vault, offsite, cloud"))
	sources := []string{"deposits/xm152jw3650-etd", "gis/cc044gt0726", "bags-btr/test.edu.btr_good_sha256.tar"}
	for _, name := range sources {
		b.ok("add", filepath.Join(fixtures, name))
	}
	b.ok("run", "-q")
	ids := map[string]string{}
	for _, name := range sources {
		shown := b.ok("show", filepath.Base(name), "--json")
		ids[name] = gjson.Get(shown, "manifest.item").String()
		if !strings.Contains(b.ok("show", filepath.Base(name)), "3 copies verified") {
			t.Fatalf("%s: %s", name, shown)
		}
	}
	bucket := filepath.Join(s3.Dir, "buckets", s3.Bucket, left)
	for _, at := range []string{filepath.Join(b.top, "vault"), filepath.Join(b.top, "offsite"), bucket} {
		if !targettest.FlipIn(t, at, "bag-info.txt") && !targettest.FlipIn(t, at, ".tar") {
			t.Fatalf("nothing to damage in %s", at)
		}
		if said := b.ok("fixity", "run", "--mend"); !strings.Contains(said, "3 items checked, 0 damaged") { // before another copy of the same item is
			t.Errorf("mended: %s", said)
		}
	}
	b.ok("fixity", "run", "-q")
	if r := b.ok("ocfl", "validate", filepath.Join(b.top, "vault/ocfl")); !strings.Contains(r, "3 objects, valid") {
		t.Error(r)
	}
	records := func(id string) (all string) {
		for _, file := range []string{"manifest.json", "inventory.json"} {
			out, err := exec.Command("git", "-C", b.dir, "show", "HEAD:items/"+strings.Join(strings.Split(id[:4], ""), "/")+"/"+id+"/"+file).CombinedOutput()
			if err != nil {
				t.Errorf("%s of %s: %v: %s", file, id, err, out)
			}
			all += string(out)
		}
		return all
	}
	before := map[string]string{}
	for _, id := range ids {
		before[id] = records(id)
		b.ok("retrieve", id, "--to", filepath.Join(b.top, "before-"+id))
	}
	for name, at := range map[string]string{"vault": filepath.Join(b.top, "vault"), "offsite": filepath.Join(b.top, "offsite"), "cloud": bucket} {
		if name != left {
			b.must(os.RemoveAll(at))
		}
	}
	b.must(os.RemoveAll(b.dir))
	b.ok("init", b.dir)
	b.write("ws/bagpipe.yaml", settings(left))
	if said := b.ok("recover", "--from", left); !strings.Contains(said, "3 items recovered from "+left) {
		t.Fatal(said)
	}
	for name, id := range ids {
		if now := records(id); now != before[id] {
			t.Errorf("%s: its records are\n%s\nand were\n%s", name, now, before[id])
		}
		to := filepath.Join(b.top, "after-"+id)
		b.ok("retrieve", id, "--to", to)
		if out, err := exec.Command("diff", "-r", filepath.Join(b.top, "before-"+id), to).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	b.ok("run", "-q")
	b.ok("fixity", "run", "-q")
}

// A run that deposits on targets of each kind is killed again and again. In the end each item has as many valid copies, and
// nothing is left beside them.
func TestKilledDeposits(t *testing.T) {
	t.Parallel()
	s3, sshd := targettest.NewS3(t, false), targettest.NewSSHD(t)
	b := newBench(t)
	b.write("ws/bagpipe.yaml", fmt.Sprintf(`schema: 1
inbox: {collections: open, quiet: 10ms, rescan: 1s}
targets:
  plain: {kind: folder, path: ../plain}
  vault: {kind: folder, layout: ocfl, path: ../vault}
  offsite: {kind: sftp, host: %q, user: %s, knownHosts: %s, key: %s, path: %s/offsite}
  cloud: {kind: s3, layout: tar, endpoint: %q, bucket: %s, style: path, secrets: %s}
defaults: {workflow: accession, targets: [plain, vault, offsite, cloud]}
`, sshd.Host, sshd.User, sshd.KnownHosts, sshd.Key, b.top, s3.Endpoint, s3.Bucket, s3.Secrets))
	const items = 3
	for i := range items {
		b.write(fmt.Sprintf("ws/inbox/default/i%d/a.txt", i), strings.Repeat("a", 200_000+i))
		b.write(fmt.Sprintf("ws/inbox/default/i%d/d/b.txt", i), "b")
	}
	for n := range soak(12, 200) {
		p := b.start("run", "-q")
		b.awaitMoves(p, n%5)
		<-time.After(time.Duration(n*1700) * time.Microsecond)
		if !p.kill() {
			break
		}
	}
	b.ok("run", "-q")
	for i := range items {
		if said := b.ok("show", fmt.Sprintf("i%d", i)); !strings.Contains(said, "4 copies verified: ") {
			t.Errorf("item %d: %s", i, said)
		}
	}
	b.ok("fixity", "run", "-q")
	if r := b.ok("ocfl", "validate", filepath.Join(b.top, "vault/ocfl")); !strings.Contains(r, fmt.Sprintf("%d objects, valid", items)) {
		t.Error(r)
	}
	for _, dir := range []string{filepath.Join(b.top, "plain"), filepath.Join(b.top, "vault"), filepath.Join(b.top, "offsite"), filepath.Join(s3.Dir, "buckets")} {
		left, err := exec.Command("find", dir, "-name", ".*.part*", "-o", "-name", ".*.damaged", "-o", "-path", "*/staging/*").CombinedOutput()
		b.must(err)
		if len(left) > 0 {
			t.Errorf("left: %s", left)
		}
	}
}

// The status says what a server does not offer.
func TestStatusTellsWhatAServerLacks(t *testing.T) {
	t.Parallel()
	sshd := targettest.NewSSHD(t, "-P", "fsync,posix-rename")
	b := newBench(t)
	b.write("ws/bagpipe.yaml", fmt.Sprintf(`schema: 1
targets:
  offsite: {kind: sftp, host: %q, user: %s, knownHosts: %s, key: %s, path: %s/offsite}
defaults: {workflow: accession, targets: [offsite]}
`, sshd.Host, sshd.User, sshd.KnownHosts, sshd.Key, b.top))
	b.write("a.txt", "a")
	b.ok("add", filepath.Join(b.top, "a.txt"))
	b.ok("run", "-q")
	said := b.ok("status")
	for _, name := range []string{"fsync@openssh.com", "posix-rename@openssh.com"} {
		if !strings.Contains(said, "offsite: the server offers no "+name) {
			t.Errorf("nothing of %s:\n%s", name, said)
		}
	}
}
