package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bagpipe/layout/disk"
	"bagpipe/testdata/sample"

	"github.com/tidwall/gjson"
)

// accounts is a workspace of a service's account, and a producer with one of its own;
// both are in one group.
type accounts struct {
	*bench
}

const (
	serviceUID  = 12345
	producerUID = 12346
	sharedGID   = 12347
)

func newAccounts(t *testing.T) *accounts {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can act as two accounts")
	}
	b := &bench{t: t, top: sample.TempDir(t)}
	b.dir = filepath.Join(b.top, "archive")
	own, err := testEnv(filepath.Join(b.top, "home"))
	b.must(err)
	b.env = append(append(os.Environ(), own...), "TOP="+b.top)
	program, err := exec.LookPath("bagpipe")
	b.must(err)
	real, err := filepath.EvalSymlinks(program)
	b.must(err)
	for _, path := range []string{b.dir, program, real} {
		b.letThrough(filepath.Dir(path))
	}
	b.must(os.Chown(b.top, serviceUID, sharedGID))
	a := &accounts{b}
	a.service(0, "bagpipe init archive")
	b.must(hasten(b.dir))
	a.service(0, "chgrp 12347 archive/inbox/default && chmod 2775 archive/inbox/default")
	return a
}

// as runs a script as an account, with the usual umask.
func (a *accounts) as(uid uint32, code int, script string) string {
	a.t.Helper()
	p := &process{b: a.bench, cmd: exec.Command("sh", "-c", "umask 022\n"+script), end: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = a.top, a.env, &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{sharedGID}}}
	p.err = p.cmd.Run()
	close(p.end)
	return p.code(code)
}

func (a *accounts) service(code int, script string) string {
	a.t.Helper()
	return a.as(serviceUID, code, script)
}
func (a *accounts) producer(code int, script string) string {
	a.t.Helper()
	return a.as(producerUID, code, script)
}

// stands wants a drop's row in status to be in a state and to say something.
func (a *accounts) stands(name, state, reason string) {
	a.t.Helper()
	rows := gjson.Get(a.service(0, "bagpipe -C archive status --json"), `inbox.#(name=="`+name+`")`)
	if rows.Get("state").String() != state || !strings.Contains(rows.Get("reason").String(), reason) {
		a.t.Errorf("%s: %s; want %s, with %q", name, rows, state, reason)
	}
}

func (a *accounts) items(want int) {
	a.t.Helper()
	if got := gjson.Get(a.service(0, "bagpipe -C archive items --json"), "#").Int(); got != int64(want) {
		a.t.Errorf("%d items, want %d", got, want)
	}
}

// What another account would write, the workspace's own could not change: also root
// looks only.
func TestWritingAsAnotherAccountIsRefused(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.service(0, "echo a > a.txt && bagpipe -C archive add a.txt && "+runQuiet)
	name := disk.AccountName(serviceUID)
	// One outside of the group sees less, and is not told of mounts.
	if out := a.as(producerUID, 1, "bagpipe -C archive status"); !strings.Contains(out, "is for the workspace's account and its group to see") {
		t.Errorf("status: %s", out)
	}
	if out := a.as(producerUID, 1, "bagpipe -C archive doctor"); strings.Contains(out, "holds no item") || strings.Count(out, "account") != 1 {
		t.Errorf("doctor: %s", out)
	}
	for _, uid := range []uint32{0, producerUID} {
		if uid == producerUID { // a reader of the group
			a.service(0, "chmod -R g+rX archive")
		}
		if out := a.as(uid, 0, "bagpipe -C archive items"); !strings.HasPrefix(out, "read-only: this workspace belongs to "+name+"\n") {
			t.Errorf("as %d: %s", uid, out)
		}
		for _, act := range []string{"run", "add a.txt", "hold a.txt -m x", "maintain", "user add anna", "user remove anna", "token add scanner", "token remove x"} {
			out := a.as(uid, 1, "bagpipe -C archive "+act)
			if want := "bagpipe: this workspace belongs to " + name + ", and only " + name + " may change it; act as that account: sudo -u " + name + " bagpipe -C "; !strings.Contains(out, want) {
				t.Errorf("%s as %d: %s", act, uid, out)
			}
		}
	}
	out := a.as(0, 1, "git config --global --add safe.directory '*'; git clone -q archive clone && cd clone && git commit -q --allow-empty -m x && git push -q")
	if want := "the push is refused: this workspace belongs to " + name; !strings.Contains(out, want) {
		t.Errorf("push: %s", out)
	}
	if out := a.service(0, "find archive ! -user 12345"); out != "" {
		t.Errorf("of another account: %s", out)
	}
	a.service(0, "bagpipe -C archive hold a.txt -m x")

	// Nor does it allow fetches for anybody else.
	a.service(0, `printf 'fetch: {folders: [/]}\n' >> archive/bagpipe.yaml && bagpipe -C archive status >status &&
		mkdir -p letters && cp a.txt letters && bagpipe bag create --in-place letters && rm letters/data/a.txt &&
		echo "file://$TOP/a.txt - data/a.txt" > letters/fetch.txt && chmod -R a+rwX letters archive`)
	if out := a.as(producerUID, 1, "bagpipe -C archive bag fetch letters; code=$?; rm -rf letters/.bagpipe-fetch; exit $code"); !strings.Contains(out, "not allowed") {
		t.Errorf("fetch: %s", out)
	}
	a.service(0, "bagpipe -C archive bag fetch letters")
}

// A catalog whose root may not be read is away: its items' steps wait, and go on once it may be.
func TestStepsWaitForARootThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.service(0, `sed -i 's/later: 1m /later: 10ms /' archive/bagpipe.yaml && mkdir -p photos/2024 && echo one > photos/2024/one.txt && echo two > photos/two.txt &&
		bagpipe -C archive catalog add photos photos && bagpipe -C archive catalog scan`)
	for _, closed := range []string{"photos", "photos/2024"} {
		out := a.service(0, "chmod 0 "+closed+" && timeout -s INT 3 bagpipe -C archive run; chmod 755 "+closed+"; bagpipe -C archive log photos/2024/one.txt")
		if !strings.Contains(out, "cannot be reached: permission denied") || strings.Contains(out, "failed") && !strings.Contains(out, "0 failed") {
			t.Errorf("%s is closed: %s", closed, out)
		}
	}
	a.service(0, runQuiet)
	if n := gjson.Get(a.service(0, "bagpipe -C archive items --status completed --json"), "#").Int(); n != 2 {
		t.Errorf("%d items are done, want 2", n)
	}
}

// What may not be read in its place is not damaged, and not held.
func TestFixityOfWhatMayNotBeRead(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.service(0, "mkdir photos && echo one > photos/one.txt && bagpipe -C archive catalog add photos photos && bagpipe -C archive catalog scan && "+runQuiet)
	if out := a.service(4, "chmod 0 photos/one.txt && bagpipe -C archive fixity run photos/one.txt"); !strings.Contains(out, "not read  ") || !strings.Contains(out, "0 damaged") {
		t.Errorf("it may not be read: %s", out)
	}
	if out := a.service(0, "bagpipe -C archive status"); !strings.Contains(out, " 0 held") {
		t.Errorf("status: %s", out)
	}
	if out := a.service(0, "git -C archive log --grep=fixity"); strings.Contains(out, "failed") {
		t.Errorf("recorded: %s", out)
	}
	a.service(0, "chmod 644 photos/one.txt && bagpipe -C archive fixity run photos/one.txt")
}

const runQuiet = "bagpipe -C archive run -q"

func TestAFolderThatMayNotBeMovedIsCopiedOnce(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.producer(0, "mkdir archive/inbox/default/box && echo one > archive/inbox/default/box/1.txt && echo a > archive/inbox/default/a.txt")
	out := a.service(0, "bagpipe -C archive run")
	if !strings.Contains(out, "2 drops taken in") || !strings.Contains(out, "default/box was copied") {
		t.Errorf("run: %s", out)
	}
	a.items(2)
	a.stands("box", "taken", "its owner may remove it: rm -r "+a.dir+"/inbox/default/box")
	a.service(0, "rm -rf archive/.bagpipe; "+runQuiet) // what was taken stands in the history
	a.items(2)
	foreign := a.service(0, "find archive/items archive/intake ! -user 12345")
	if foreign != "" {
		t.Errorf("of another account: %s", foreign)
	}
	a.producer(2, "cd archive/items")
	a.producer(0, "chmod g+w archive/inbox/default/box") // no other drop for that
	a.service(0, runQuiet)
	a.items(2)
	a.producer(0, "echo more > archive/inbox/default/box/2.txt; chmod g-w archive/inbox/default/box")
	a.service(4, runQuiet)
	a.stands("box", "barred", "changed after it was taken in as item ")
	a.producer(0, "mv archive/inbox/default/box archive/inbox/default/box2")
	a.service(0, runQuiet)
	a.items(3)
	a.producer(0, "rm -r archive/inbox/default/box2")
	if out := a.service(0, "bagpipe -C archive status --json"); gjson.Get(out, "inbox.#").Int() != 0 {
		t.Errorf("status: %s", out)
	}
	a.must(leftBehind(a.dir))
}

func TestADropThatMayNotBeReadStopsNobody(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.producer(0, `cd archive/inbox/default && echo s > secret.txt && chmod 600 secret.txt && mkdir closed "odd name" link &&
		echo x > closed/x && echo x > "odd name/x" && ln -s /etc/passwd link/p && chmod 700 closed "odd name" && echo a > a.txt`)
	out := a.service(4, runQuiet)
	if !strings.Contains(out, "1 drop taken in, 0 rejected; steps: 5 completed") && !strings.Contains(out, "1 drop taken in, 0 rejected; steps: 4 completed") {
		t.Errorf("run: %s", out)
	}
	inbox := a.dir + "/inbox/default/"
	a.stands("secret.txt", "barred", "chmod -R g+rX "+inbox+"secret.txt")
	a.stands("closed", "barred", "belongs to 12346; is a folder that cannot be read")
	a.stands("odd name", "barred", "chmod -R g+rX '"+inbox+"odd name'")
	a.stands("link", "barred", "is a symbolic link")
	a.producer(0, "chmod -R g+rX "+inbox+"secret.txt "+inbox+"closed '"+inbox+"odd name'; rm -r "+inbox+"link")
	a.service(0, runQuiet)
	a.items(4)
}

// A rejected copy leaves its original, and is rejected once.
func TestACopyIsRejectedOnce(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.must(edit(filepath.Join(a.dir, "bagpipe.yaml"), "inbox:", "inbox:\n  duplicates: reject"))
	a.producer(0, "cd archive/inbox/default && mkdir box again && echo one > box/1.txt && echo one > again/1.txt")
	out := a.service(4, runQuiet)
	if !strings.Contains(out, "1 drop taken in, 1 rejected") {
		t.Errorf("run: %s", out)
	}
	if out := a.service(0, runQuiet); out != "" {
		t.Errorf("second run: %s", out)
	}
	a.items(1)
}

// Two engines that copy the same original make one item of it.
func TestTwoEnginesCopyOneOriginal(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.producer(0, "cd archive/inbox/default && for n in 1 2 3 4 5 6 7 8; do mkdir box$n && echo $n > box$n/$n.txt; done")
	a.service(0, runQuiet+" & "+runQuiet+" & wait")
	a.service(0, runQuiet)
	a.items(8)
	a.must(leftBehind(a.dir))
}

// One collection that cannot be listed keeps the others' drops from nothing.
func TestACollectionThatCannotBeListedStopsNoOther(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.must(os.Mkdir(a.dir+"/inbox/closed", 0o700))
	a.service(0, "echo a > archive/inbox/default/a.txt")
	out := a.service(4, runQuiet)
	if !strings.Contains(out, "1 drop taken in") || !strings.Contains(out, "inbox/closed") {
		t.Errorf("run: %s", out)
	}
}

// A robot that leaves a read-only folder in its scratch stops nobody, nor does what
// belongs to another account there.
func TestScratchThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.service(0, "mkdir -p archive/.bagpipe/scratch/0123abcd/x/y && touch archive/.bagpipe/scratch/0123abcd/x/y/f && chmod 555 archive/.bagpipe/scratch/0123abcd/x/y")
	a.must(os.MkdirAll(a.dir+"/.bagpipe/scratch/0123abce/x", 0o755))
	a.must(os.WriteFile(a.dir+"/.bagpipe/scratch/0123abce/x/f", nil, 0o600))
	a.service(0, "echo a > archive/inbox/default/a.txt")
	out := a.service(4, runQuiet)
	if !strings.Contains(out, "1 drop taken in") || !strings.Contains(out, "remove scratch of dead engine 0123abce") || strings.Contains(out, "0123abcd") {
		t.Errorf("run: %s", out)
	}
	if a.exists("archive/.bagpipe/scratch/0123abcd") {
		t.Error("the read-only scratch is still there")
	}
}

// The commands of the section on producers are run by the accounts it names. Those of
// root change the machine, and setfacl is not everywhere.
func TestProducersSection(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.service(0, "chgrp 12345 archive/inbox/default && chmod 0755 archive/inbox/default")
	names := strings.NewReplacer("/srv/archive", a.dir, "producers", "12347", "u:anna", "u:12346", "u:bagpipe", "u:12345")
	ran := 0
	for _, b := range docBlocks(t, "../../docs/operations.md") {
		if b.notRun != "needs several accounts" {
			continue
		}
		for _, part := range strings.Split(b.steps[0].command, "# as ")[1:] {
			who, script, _ := strings.Cut(part, "\n")
			if _, err := exec.LookPath("setfacl"); err != nil && strings.Contains(script, "setfacl") {
				t.Logf("not run, as setfacl is not here: %s", script)
				continue
			}
			ran++
			switch who {
			case "anna":
				a.producer(0, names.Replace("set -e\n"+script))
			case "bagpipe":
				if out := a.service(0, names.Replace("set -e\n"+script)); strings.Contains(script, "status") && !strings.Contains(out, "its owner may remove it: rm -r "+a.dir+"/inbox/default/letters") {
					t.Errorf("status: %s", out)
				}
			case "root": // groupadd and usermod: the accounts of newAccounts are in the group
			default:
				t.Errorf("as %s: no such account", who)
			}
		}
	}
	if ran < 7 {
		t.Errorf("%d parts were run", ran)
	}
	a.items(2)
	if a.exists("archive/inbox/default/maps") {
		t.Error("maps, which may be removed, is still in the inbox")
	}
}

// Nobody adds to a deposited bag, nor removes of it, by accident, not even the service's own account; and what
// Bagpipe does with one it still can: a revision beside it, a copy, mending, handing out, disposal.
func TestDepositedBagsAreReadOnly(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.t.Cleanup(func() { _ = disk.RemoveTree(a.dir) }) // which also an ordinary account can
	frozen := func(bags string) {
		t.Helper()
		if out := a.service(0, "find "+bags+" -perm /222"); out != "" || a.service(0, "find "+bags+" -type d") == "" {
			t.Errorf("may be written to: %s", out)
		}
	}
	a.service(0, "mkdir -p box/sub && echo a > box/sub/a.txt && bagpipe -C archive add box && "+runQuiet)
	frozen("archive/store/?/?/?/?/*")
	a.service(1, "touch $(echo archive/store/?/?/?/?/*/data)/new")
	a.service(1, "rm -rf archive/store/?/?/?/?/*")
	a.service(0, "bagpipe -C archive item set box --metadata title=Box && bagpipe -C archive step reset box bag --after -m again && "+runQuiet)
	a.service(0, "test -d archive/store/?/?/?/?/*-r2")
	frozen("archive/store/?/?/?/?/*")

	a.service(0, "printf 'targets:\\n  vault: {kind: folder, path: ../vault}\\n' >> archive/bagpipe.yaml && bagpipe -C archive deposit copy --to vault")
	frozen("vault/?/?/?/?/*")
	a.service(0, "chmod -R u+w vault/?/?/?/?/* && rm -r vault/?/?/?/?/*/data/sub && for d in vault/?/?/?/?/*/data; do touch $d/stranger; done && chmod -R a-w vault/?/?/?/?/*")
	if out := a.service(0, "bagpipe -C archive fixity run --mend box"); !strings.Contains(out, "vault mended") {
		t.Errorf("mend: %s", out)
	}
	frozen("vault/?/?/?/?/*")
	a.service(0, "bagpipe -C archive retrieve box --from vault --to out && bagpipe bag validate out && rm -r out")

	a.service(0, "bagpipe -C archive dispose propose box -m 'given back' > key")
	for _, who := range []string{"Bob", "Eve"} {
		a.service(0, "GIT_AUTHOR_NAME="+who+" GIT_AUTHOR_EMAIL="+who+"@example.org bagpipe -C archive dispose approve $(cat key)")
	}
	a.service(0, "bagpipe -C archive dispose run")
	if out := a.service(0, "find archive/store vault -name a.txt"); out != "" {
		t.Errorf("left after disposal: %s", out)
	}
}

// A step, and a delivery, of an object in place that this account may not read wait until it may: that is no fault of the object.
func TestObjectsThatMayNotBeReadWait(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	a.service(0, "mkdir -p root/d portal && chmod 777 root root/d && echo hey >root/n.txt && echo ho >root/d/a.txt && echo BagIt >root/d/o.deed")
	a.write("archive/rules/d.yaml", "schema: 1\nname: d\nrules:\n  - {name: d, match: {kind: folder, holds: [o.deed]}, type: deed}\ndelivery:\n  - {to: portal}\n")
	a.write("archive/bagpipe.yaml", "schema: 1\ndefaults: {workflow: accession}\nretry: {later: 5s}\ntargets: {portal: {kind: folder, path: ../portal}}\n")
	a.service(0, "bagpipe -C archive catalog add c root && bagpipe -C archive catalog scan")
	a.service(0, "chmod 000 root/n.txt root/d/a.txt")
	out := a.service(0, "bagpipe -C archive run -q; for i in n.txt d; do bagpipe -C archive why $i; done; bagpipe -C archive items")
	if n := strings.Count(out, "may not be read by this account"); n != 2 || strings.Contains(out, "failed  ") {
		t.Errorf("%d objects wait: %s", n, out)
	}
	a.service(0, "chmod 644 root/n.txt root/d/a.txt")
	out = a.service(0, "sleep 6; bagpipe -C archive run -q; bagpipe -C archive delivery; bagpipe -C archive items")
	if strings.Count(out, "delivered") != 2 || strings.Count(out, "accession.1  completed") != 2 {
		t.Errorf("once they may be read: %s", out)
	}
}
