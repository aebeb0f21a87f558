package claim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bagpipe/layout"
)

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// ghost writes the file of an engine that no process is.
func ghost(t *testing.T, root string, info engineInfo) layout.EngineID {
	t.Helper()
	info.Engine = newID(t)
	path := enginePath(root, info.Engine)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, encode(info), 0o644); err != nil {
		t.Fatal(err)
	}
	return info.Engine
}

func TestFreeFlockOnThisHostIsDead(t *testing.T) {
	h := thisHost(t)
	for name, info := range map[string]engineInfo{
		"this boot":                {Host: h.Name, BootID: h.BootID, PID: 1},
		"pid reused after reboot":  {Host: h.Name, BootID: "another-boot", PID: os.Getpid()},
		"same kernel in container": {Host: "container", BootID: h.BootID, PID: 1},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			e := register(t, root)
			wantAlive(t, e, ghost(t, root, info), false)
		})
	}
}

func TestAnotherHostLivesByItsHeartbeat(t *testing.T) {
	root := t.TempDir()
	c := &clock{at: time.Now()}
	e := registerAs(t, root, thisHost(t), c.now)
	far := ghost(t, root, engineInfo{Host: "elsewhere", BootID: "elsewhere", PID: os.Getpid()})
	beat := func(at time.Time) {
		if err := os.Chtimes(enginePath(root, far), at, at); err != nil {
			t.Fatal(err)
		}
	}
	beat(c.now().Add(-240 * time.Hour)) // its clock is far behind; only change counts
	wantAlive(t, e, far, true)
	c.advance(59 * time.Second)
	wantAlive(t, e, far, true)
	beat(c.now().Add(-250 * time.Hour)) // and may even jump back
	wantAlive(t, e, far, true)
	c.advance(59 * time.Second)
	wantAlive(t, e, far, true)
	c.advance(time.Second)
	wantAlive(t, e, far, false)
	beat(c.now())
	wantAlive(t, e, far, true)
	if err := os.Remove(enginePath(root, far)); err != nil {
		t.Fatal(err)
	}
	wantAlive(t, e, far, false)
}

func TestClaimOfAnotherHostIsTakenOnlyWhenSilent(t *testing.T) {
	root := t.TempDir()
	c := &clock{at: time.Now()}
	e := registerAs(t, root, thisHost(t), c.now)
	far := ghost(t, root, engineInfo{Host: "elsewhere", BootID: "elsewhere", PID: 7})
	data := encode(Holder{Engine: far, Host: "elsewhere", PID: 7, Item: keyOf(1).Item, Workflow: "accession.1", Step: "unpack"})
	path := filepath.Join(root, layout.ClaimsDir, keyOf(1).file())
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, e, 1, far)
	c.advance(61 * time.Second)
	mustTake(t, e, 1)
	wantHeld(t, e, 1, e.ID())
}

// A power cut can leave a claim's file empty, and its clock in the future.
func TestDamagedClaim(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "cut": `{"engine": "5c1e`, "no engine": `{"pid": 3}`, "zeroes": "\x00\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			c := &clock{at: time.Now()}
			e := registerAs(t, root, thisHost(t), c.now)
			path := filepath.Join(root, layout.ClaimsDir, keyOf(1).file())
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			future := c.now().Add(time.Hour)
			if err := os.Chtimes(path, future, future); err != nil {
				t.Fatal(err)
			}
			wantHeld(t, e, 1, "")
			list, err := List(root)
			if err != nil || len(list) != 1 || !list[0].Damaged || list[0].File != keyOf(1).file() {
				t.Fatalf("List = %+v, %v", list, err)
			}
			c.advance(DamagedLimit - time.Second)
			wantHeld(t, e, 1, "")
			if err := e.Discard(list[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("discarded too early: %v", err)
			}
			c.advance(time.Second)
			taken := mustTake(t, e, 1)
			if err := e.Discard(list[0]); err != nil {
				t.Fatal(err)
			}
			if err := taken.Release(); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.WriteFile(path, []byte(content), 0o644), os.Chtimes(path, future.Add(-2*time.Hour), future.Add(-2*time.Hour)), e.Discard(list[0])); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a damaged claim that is nobody's stays: %v", err)
			}
		})
	}
}

func TestDamagedEngineFileIsJudgedByItsHeartbeat(t *testing.T) {
	root := t.TempDir()
	c := &clock{at: time.Now()}
	e := registerAs(t, root, thisHost(t), c.now)
	id := newID(t)
	if err := os.WriteFile(enginePath(root, id), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	wantAlive(t, e, id, true)
	c.advance(heartbeatLimit)
	wantAlive(t, e, id, false)
}

func TestRegisterSweepsTheDeadOfThisHost(t *testing.T) {
	root := t.TempDir()
	h := thisHost(t)
	living := register(t, root)
	dead := ghost(t, root, engineInfo{Host: h.Name, BootID: "before"})
	far := ghost(t, root, engineInfo{Host: "elsewhere", BootID: "elsewhere"})
	left := filepath.Join(root, layout.ClaimsDir, "."+string(dead)+".3.tmp")
	kept := filepath.Join(root, layout.ClaimsDir, "."+string(living.ID())+".3.tmp")
	for _, p := range []string{left, kept} {
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	register(t, root)
	for path, want := range map[string]bool{
		enginePath(root, living.ID()): true, enginePath(root, far): true, kept: true,
		enginePath(root, dead): false, left: false,
	} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want there: %v", filepath.Base(path), err, want)
		}
	}
}

func TestObserverNeedsNoEngine(t *testing.T) {
	root := t.TempDir()
	o := NewObserver(root, thisHost(t), time.Now)
	wantAlive(t, o, "00000000", false) // no .bagpipe at all
	e := register(t, root)
	wantAlive(t, o, e.ID(), true)
}

func TestEngines(t *testing.T) {
	root := t.TempDir()
	h := thisHost(t)
	o := NewObserver(root, h, time.Now)
	if all, err := o.Engines(); err != nil || len(all) != 0 {
		t.Fatalf("Engines = %v, %v", all, err)
	}
	living := register(t, root)
	dead := ghost(t, root, engineInfo{Host: h.Name, PID: 7})
	all, err := o.Engines()
	if err != nil || len(all) != 2 {
		t.Fatalf("Engines = %v, %v", all, err)
	}
	for _, e := range all {
		switch e.ID {
		case living.ID():
			if !e.Alive || e.PID != os.Getpid() || e.Host != h.Name || e.Since.IsZero() {
				t.Errorf("%+v", e)
			}
		case dead:
			if e.Alive || e.PID != 7 {
				t.Errorf("%+v", e)
			}
		default:
			t.Errorf("%+v", e)
		}
	}
}
