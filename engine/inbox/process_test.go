package inbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/layout"
)

// child is the test's binary as another process. It takes whatever has settled,
// promotes it and is done, until the inbox is empty; "slow" children go on until
// they are killed. Quiet is so short that everything dropped before has settled.
func child(mode string) {
	b, err := New(Options{Root: os.Getenv("BAGPIPE_INBOX_ROOT"), Engine: layout.EngineID(os.Getenv("BAGPIPE_INBOX_ENGINE")),
		Settling: Settling{Quiet: time.Millisecond}, Together: bySuffix})
	if err != nil {
		panic(err)
	}
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		panic(err)
	}
	ctx := context.Background()
	for {
		found, err := b.Scan(ctx)
		if err != nil {
			panic(err)
		}
		if len(found.Settled) == 0 && mode == "race" {
			break
		}
		for _, d := range found.Settled {
			t, err := b.Take(ctx, d, Ticket{})
			if errors.Is(err, ErrGone) {
				continue
			}
			if err == nil {
				t, err = b.Promote(ctx, t)
			}
			if err == nil {
				err = b.Done(t)
			}
			if err != nil {
				panic(err)
			}
			fmt.Println(d.Name)
		}
	}
	fmt.Println("done")
}

type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, w *bench, mode string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), "BAGPIPE_INBOX_CHILD="+mode, "BAGPIPE_INBOX_ROOT="+w.opt.Root,
		"BAGPIPE_INBOX_ENGINE="+string(w.next().opt.Engine))
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func (p *process) begin() { io.WriteString(p.in, "go\n") }

// read gives the names the child has finished.
func (p *process) read() (names []string, done bool) {
	for p.out.Scan() {
		if p.out.Text() == "done" {
			return names, true
		}
		names = append(names, p.out.Text())
	}
	return names, false
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

func TestTwoProcessesShareTheDrops(t *testing.T) {
	const drops = 200
	w := newBench(t)
	for i := range drops {
		w.drop(fmt.Sprintf("drop-%03d", i))
	}
	ps := []*process{start(t, w, "race"), start(t, w, "race")}
	got := make([][]string, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		p.begin()
		wg.Go(func() {
			var done bool
			if got[i], done = p.read(); !done {
				t.Error("a child did not finish")
			}
		})
	}
	wg.Wait()
	t.Logf("%d and %d", len(got[0]), len(got[1]))
	if len(got[0])+len(got[1]) != drops {
		t.Errorf("%d taken of %d", len(got[0])+len(got[1]), drops)
	}
	w.wantEmpty("inbox/default")
	w.wantEmpty("intake")
	w.wantOnceInItems(drops)
}

// wantOnceInItems checks that every drop is in one item, whole.
func (w *bench) wantOnceInItems(drops int) {
	w.t.Helper()
	count := map[string]int{}
	for path, content := range w.files("items") {
		_, rest, ok := layout.ItemOfPath("items/" + path)
		parts := strings.SplitN(rest, "/", 3)
		if !ok || len(parts) != 3 {
			w.t.Errorf("unexpected file %s", path)
			continue
		}
		if want := dropFiles(parts[1])[parts[1]+"/"+parts[2]]; content != want {
			w.t.Errorf("%s: %q, want %q", path, content, want)
		}
		count[parts[1]]++
	}
	for name, n := range count {
		if n != 2 {
			w.t.Errorf("%s: %d files, want 2", name, n)
		}
	}
	if len(count) != drops {
		w.t.Errorf("%d drops in items, want %d", len(count), drops)
	}
}

// A child is killed again and again wherever it stands; the next one recovers
// first, as an engine does, and in the end every drop is in one item.
func TestKillInTheMiddleOfTaking(t *testing.T) {
	rounds := 12
	if os.Getenv("BAGPIPE_SOAK") != "" {
		rounds = 500
	}
	w := newBench(t)
	drops := 0
	recovered := 0
	for round := range rounds {
		for range 8 {
			w.drop(fmt.Sprintf("drop-%04d", drops))
			drops++
		}
		p := start(t, w, "slow")
		p.begin()
		for range 1 + round%4 { // after some drops, in the middle of the next
			if !p.out.Scan() {
				t.Fatal("the child ended")
			}
		}
		spin(time.Duration(round*37%200) * 10 * time.Microsecond)
		p.kill()
		next := w.next()
		for _, got := range next.pending() {
			recovered++
			if err := next.Done(next.promoted(got)); err != nil {
				t.Fatal(err)
			}
		}
		w.wantEmpty("intake")
	}
	p := start(t, w, "race")
	p.begin()
	if _, done := p.read(); !done {
		t.Fatal("the last child did not finish")
	}
	t.Logf("%d drops, %d recovered after a kill", drops, recovered)
	w.wantEmpty("inbox/default")
	w.wantEmpty("intake")
	w.wantOnceInItems(drops)
}

// spin lets a little time pass, finer than a sleep could.
func spin(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

func TestTwoEnginesRecoverOnce(t *testing.T) {
	w := newBench(t)
	const drops = 40
	for i := range drops {
		w.take(fmt.Sprintf("drop-%02d", i))
	}
	engines := []*bench{w.next(), w.next()}
	dead := w.opt.Engine
	got := make([][]Taken, len(engines))
	var wg sync.WaitGroup
	for i, e := range engines {
		wg.Go(func() {
			var err error
			got[i], err = e.Pending(context.Background(), func(id layout.EngineID) bool { return id != dead })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var names []string
	for _, ts := range got {
		for _, x := range ts {
			names = append(names, filepath.Base(x.Path))
		}
	}
	sort.Strings(names)
	for i, n := range names {
		if n != fmt.Sprintf("drop-%02d", i) {
			t.Fatalf("recovered %q", names)
		}
	}
	if len(names) != drops {
		t.Errorf("%d recovered of %d", len(names), drops)
	}
}
