package claim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/layout"
)

// child is what the test's binary does as another process: register, wait for a
// line, try to take keys 0 to N, print the numbers won, and hold them until its
// input ends or it is killed.
func child(mode string) {
	n, err := strconv.Atoi(mode)
	if err != nil {
		panic(err)
	}
	h, err := ThisHost()
	if err != nil {
		panic(err)
	}
	e, err := Register(os.Getenv("BAGPIPE_CLAIM_ROOT"), layout.EngineID(os.Getenv("BAGPIPE_CLAIM_ENGINE")), h, time.Now)
	if err != nil {
		panic(err)
	}
	in := bufio.NewReader(os.Stdin)
	fmt.Println("registered")
	if _, err := in.ReadString('\n'); err != nil {
		panic(err)
	}
	out := bufio.NewWriter(os.Stdout)
	for i := range n {
		_, err := e.Take(keyOf(i), layout.AttemptKey{N: 1, Engine: e.ID()})
		var held *HeldError
		switch {
		case err == nil:
			fmt.Fprintln(out, i)
		case !errors.As(err, &held):
			panic(err)
		}
	}
	fmt.Fprintln(out, "done")
	out.Flush()
	io.Copy(io.Discard, in)
	if err := e.Close(); err != nil {
		panic(err)
	}
}

type process struct {
	t   *testing.T
	id  layout.EngineID
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, root string, keys int) *process {
	t.Helper()
	p := &process{t: t, id: newID(t), cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), "BAGPIPE_CLAIM_CHILD="+strconv.Itoa(keys),
		"BAGPIPE_CLAIM_ROOT="+root, "BAGPIPE_CLAIM_ENGINE="+string(p.id))
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill() })
	if got := p.line(); got != "registered" {
		t.Fatalf("child said %q", got)
	}
	return p
}

func (p *process) line() string {
	s, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Errorf("child: %v", err)
	}
	return strings.TrimSpace(s)
}

func (p *process) begin() { io.WriteString(p.in, "go\n") }

// wins reads the numbers the child won.
func (p *process) wins() []int {
	var won []int
	for {
		s := p.line()
		if s == "done" || p.t.Failed() {
			return won
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			p.t.Errorf("child said %q", s)
			return won
		}
		won = append(won, n)
	}
}

// kill ends the child with SIGKILL and waits for it.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

func TestKilledProcessLosesItsClaims(t *testing.T) {
	root := t.TempDir()
	p := start(t, root, 3)
	p.begin()
	if won := p.wins(); len(won) != 3 {
		t.Fatalf("child won %v", won)
	}
	e := register(t, root)
	wantAlive(t, e, p.id, true)
	wantHeld(t, e, 1, p.id)
	p.kill()
	wantAlive(t, e, p.id, false)
	mustTake(t, e, 1)
	wantHeld(t, e, 1, e.ID())

	other := register(t, root) // sweeps the dead engine's file, not its claims
	if _, err := os.Stat(enginePath(root, p.id)); !os.IsNotExist(err) {
		t.Errorf("the dead engine's file is still there: %v", err)
	}
	mustTake(t, other, 2)
}

func TestClosedProcessReleases(t *testing.T) {
	root := t.TempDir()
	p := start(t, root, 2)
	p.begin()
	p.wins()
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if list, err := List(root); err != nil || len(list) != 0 {
		t.Errorf("List = %v, %v; want none", list, err)
	}
}

// 1,000 steps, all held by a process that was killed, and four processes that
// take them over at once; then the same for 1,000 free ones.
func TestContendingProcesses(t *testing.T) {
	const keys, takers = 1000, 4
	for _, held := range []bool{true, false} {
		t.Run(fmt.Sprintf("held=%v", held), func(t *testing.T) {
			root := t.TempDir()
			if held {
				dead := start(t, root, keys)
				dead.begin()
				if won := dead.wins(); len(won) != keys {
					t.Fatalf("won %d", len(won))
				}
				dead.kill()
			}
			ps := make([]*process, takers)
			for i := range ps {
				ps[i] = start(t, root, keys)
			}
			won := make([][]int, takers)
			var wg sync.WaitGroup
			for i, p := range ps {
				p.begin()
				wg.Go(func() { won[i] = p.wins() })
			}
			wg.Wait()
			var winners [keys]int
			for i := range won {
				t.Logf("process %d won %d", i, len(won[i]))
				for _, n := range won[i] {
					winners[n]++
				}
			}
			for n, w := range winners {
				if w != 1 {
					t.Errorf("key %d has %d winners", n, w)
				}
			}
			for _, p := range ps {
				p.in.Close()
				if err := p.cmd.Wait(); err != nil {
					t.Error(err)
				}
			}
			wantNoTemps(t, root)
		})
	}
}

// A child is killed again and again while it takes; whatever it left, each step
// can be taken exactly once afterwards.
func TestKillInTheMiddleOfTaking(t *testing.T) {
	const rounds, keys = 8, 2000
	for round := range rounds {
		root := t.TempDir()
		p := start(t, root, keys)
		p.begin()
		waitForClaims(t, root, 1+round*20)
		p.kill()
		e := register(t, root)
		list, err := List(root)
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(list) {
			mustTake(t, e, n)
		}
		wantNoTemps(t, root)
	}
}

func waitForClaims(t *testing.T, root string, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		entries, err := os.ReadDir(filepath.Join(root, layout.ClaimsDir))
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the child takes nothing")
		}
	}
}
