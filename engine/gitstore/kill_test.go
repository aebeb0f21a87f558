package gitstore

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// childRoot, when set, makes the test binary a process that commits until it is
// killed, and says on standard output what was acknowledged.
const childRoot = "BAGPIPE_TEST_CHILD"

func runChild(root string) int {
	o := followItems(testOptions())
	o.Now = time.Now
	s, err := Open(root, o)
	if err == nil {
		err = s.Repair(context.Background())
	}
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				h, err := tryPut(s, fmt.Sprintf("items/%d/e.json", i), fmt.Sprint(os.Getpid(), n))
				if err != nil {
					fmt.Println("error", err)
					return
				}
				fmt.Println(h) // one write: whole or not at all
			}
		})
	}
	wg.Wait()
	return 1
}

// TestKilledProcess kills a real process in the middle of its work, again and
// again: what it acknowledged is reachable, and the next one goes on.
func TestKilledProcess(t *testing.T) {
	kills := 4
	if os.Getenv("BAGPIPE_SOAK") != "" {
		kills = 500
	}
	root := initRoot(t, testOptions(), nil)
	var acked []string
	for range kills {
		acked = append(acked, killOne(t, root)...)
	}
	t.Logf("%d kills, %d acknowledged", kills, len(acked))
	if len(acked) == 0 {
		t.Error("nothing was acknowledged")
	}
	s := openRoot(t, root, followItems(testOptions()))
	if err := s.Repair(context.Background()); err != nil {
		t.Fatal(err)
	}
	reachable := map[string]bool{}
	for h := range strings.SplitSeq(git(t, root, "rev-list", "main"), "\n") {
		reachable[h] = true
	}
	for _, h := range acked {
		if !reachable[h] {
			t.Errorf("acknowledged %s is not reachable", h)
		}
	}
	for i := range 8 {
		path := fmt.Sprintf("items/%d/e.json", i)
		if committed, shown := readTip(t, s, path), file(t, root, path); committed != shown {
			t.Errorf("%s shows %q, committed is %q", path, shown, committed)
		}
	}
	fsck(t, root)
	if temps, err := filepath.Glob(filepath.Join(root, "items/*/.*.tmp")); err != nil || len(temps) > 8 {
		t.Errorf("%d temporary files, %v", len(temps), err)
	}
}

// killOne runs a child for a moment and gives what it acknowledged.
func killOne(t *testing.T, root string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childRoot+"="+root)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
	}
	var acked []string
	lines := bufio.NewScanner(out)
	var timer *time.Timer
	for lines.Scan() {
		text := lines.Text()
		if strings.HasPrefix(text, "error") {
			t.Errorf("child: %s", text)
			continue
		}
		if len(text) == 40 {
			acked = append(acked, text)
		}
		if timer == nil { // from the first answer on, at any moment
			timer = time.AfterFunc(time.Duration(rand.IntN(200_000))*time.Microsecond, kill)
		}
	}
	if timer == nil {
		t.Error("the child never answered")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	return acked
}
