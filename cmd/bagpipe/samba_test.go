package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// samba starts Debian's smbd on loopback, with the inbox folder default as its only share, and gives a function
// that makes a client's call of one command.
func (b *bench) samba() (client func(command string) *exec.Cmd) {
	b.t.Helper()
	for _, program := range []string{"/usr/sbin/smbd", "smbclient"} {
		if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
			b.t.Skipf("no %s, or not root; testdata/tools.sh installs it", program)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	port := l.Addr().(*net.TCPAddr).Port
	b.must(l.Close())
	dir := filepath.Join(b.top, "samba")
	conf := "[global]\ninterfaces = 127.0.0.1\nbind interfaces only = yes\ndisable netbios = yes\nload printers = no\nprinting = bsd\nprintcap name = /dev/null\n" +
		"map to guest = bad user\nguest account = root\n"
	for _, of := range []string{"private dir", "lock directory", "state directory", "cache directory", "pid directory", "ncalrpc dir"} {
		conf += of + " = " + dir + "\n"
	}
	b.write("samba/smb.conf", fmt.Sprintf("%ssmb ports = %d\n[inbox]\npath = %s/inbox/default\nforce user = root\nguest ok = yes\nread only = no\n", conf, port, b.dir))
	log, err := os.Create(filepath.Join(dir, "log"))
	b.must(err)
	cmd := exec.Command("/usr/sbin/smbd", "--foreground", "--debug-stdout", "--configfile="+filepath.Join(dir, "smb.conf"))
	cmd.Stdout, cmd.Stderr = log, log
	b.must(cmd.Start())
	b.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it ends all of its session, which is its own without --no-process-group
		_ = cmd.Wait()
		_ = log.Close()
	})
	client = func(command string) *exec.Cmd {
		return exec.Command("smbclient", "--no-pass", "--configfile="+filepath.Join(dir, "smb.conf"), fmt.Sprintf("--port=%d", port), "//127.0.0.1/inbox", "--command="+command)
	}
	b.await("smbd", func() bool { return client("ls").Run() == nil })
	return client
}

// A client of a Samba server on this host that pauses keeps its drop from being taken in, before its first byte, too;
// a whole folder that comes over the share is one item.
func TestSambaWritesIntoAnInbox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client := b.samba()

	putting := client("put - film.mov")
	reel, err := putting.StdinPipe()
	b.must(err)
	b.must(putting.Start())
	held := func() bool {
		return strings.Contains(b.ok("status"), "default/film.mov: a program has film.mov open for writing")
	}
	b.await("the file without a byte", held)
	if out := b.ok("run"); !strings.HasPrefix(out, "0 drops taken in, 0 rejected") {
		t.Errorf("run: %s", out)
	}
	first, second := strings.Repeat("the first reel\n", 1_500_000), strings.Repeat("the second reel\n", 100_000) // smbclient sends megabytes at once
	_, err = io.WriteString(reel, first)
	b.must(err)
	b.await("some of the bytes", func() bool {
		info, err := os.Stat(filepath.Join(b.dir, "inbox/default/film.mov"))
		return err == nil && info.Size() > 0
	})
	b.await("the file that is half there", held)
	if out := b.ok("run"); !strings.HasPrefix(out, "0 drops taken in, 0 rejected") {
		t.Errorf("run: %s", out)
	}
	_, err = io.WriteString(reel, second)
	b.must(err)
	b.must(reel.Close())
	b.must(putting.Wait())

	b.write("letters/1871/letter-1.txt", "Dear Sir,\n")
	b.write("letters/1872/letter-2.txt", "Yours truly\n")
	if out, err := client("lcd " + b.top + "; recurse on; prompt off; mput letters").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.await("both drops", func() bool { b.ok("run", "-q"); return len(b.labels("completed")) == 2 })
	files, err := filepath.Glob(filepath.Join(b.dir, "store/?/?/?/?/*/data/*"))
	b.must(err)
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(file))
		if filepath.Base(file) == "film.mov" {
			if got, err := os.ReadFile(file); err != nil || string(got) != first+second {
				t.Errorf("film.mov has %d bytes, not %d: %v", len(got), len(first+second), err)
			}
		}
	}
	if len(names) != 3 { // film.mov, 1871, 1872
		t.Errorf("the store has %v", names)
	}
	if out := b.ok("status"); !strings.Contains(out, "0 rejected drops") {
		t.Errorf("status: %s", out)
	}
}
