package claim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Key names what is claimed: one step of one workflow instance of one item.
type Key struct {
	Item     layout.ItemID
	Workflow string // instance, as in accession.1
	Step     layout.Name
}

// workflowRE is compiled when it is asked for: every start of the program would pay for it.
var workflowRE = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\.[1-9][0-9]{0,8}$`)
})

func (k Key) check() error {
	if _, err := layout.ParseItemID(string(k.Item)); err != nil {
		return err
	}
	if !workflowRE().MatchString(k.Workflow) {
		return fmt.Errorf("workflow instance %q: want NAME.N", k.Workflow)
	}
	_, err := layout.ParseName(string(k.Step))
	return err
}

func (k Key) file() string {
	return string(k.Item) + "." + k.Workflow + "." + string(k.Step) + ".lock"
}

func (k Key) String() string {
	return fmt.Sprintf("step %s of %s, item %s", k.Step, k.Workflow, k.Item)
}

// HeldError says that a living engine, perhaps this one, holds the step.
type HeldError struct {
	Key    Key
	Holder Holder
}

func (e *HeldError) Error() string {
	if e.Holder.Damaged {
		return fmt.Sprintf("claim %s: its lock file cannot be read yet; try again in a few seconds", e.Key)
	}
	return fmt.Sprintf("claim %s: held by engine %s (%s:%d) since %s", e.Key, e.Holder.Engine,
		e.Holder.Host, e.Holder.PID, e.Holder.Since.Format("2006-01-02T15:04:05Z07:00"))
}

// Claim is a step held by this engine.
type Claim struct {
	Key     Key
	Attempt layout.AttemptKey

	engine *Engine
	path   string
	data   []byte // as written: the file is ours while it holds this

	loseOnce sync.Once
	lost     chan struct{}
}

// maxTries bounds Take against a lock file that changes hands all the time.
const maxTries = 100

// Take claims a step for an attempt of this engine. A step that a living engine
// holds gives a *HeldError; that of a dead one is taken over. Of several takers
// exactly one wins.
func (e *Engine) Take(key Key, attempt layout.AttemptKey) (*Claim, error) {
	if err := key.check(); err != nil {
		return nil, fmt.Errorf("claim a step: %w", err)
	}
	if attempt.IsZero() || attempt.Engine != e.id {
		return nil, fmt.Errorf("claim %s: attempt %s is not one of engine %s", key, attempt, e.id)
	}
	c := &Claim{Key: key, Attempt: attempt, engine: e, lost: make(chan struct{}),
		path: filepath.Join(e.root, layout.ClaimsDir, key.file())}
	c.data = encodeHolder(Holder{Attempt: attempt.String(), BootID: e.host.BootID, Engine: e.id, Host: e.host.Name,
		Item: key.Item, PID: e.host.PID, Schema: 1, Since: e.now().UTC(), Step: key.Step, Workflow: key.Workflow})
	e.state.Lock()
	defer e.state.Unlock()
	if err := e.usable(); err != nil {
		return nil, err
	}
	if err := e.acquire(c); err != nil {
		var held *HeldError
		if errors.As(err, &held) {
			return nil, err
		}
		return nil, fmt.Errorf("claim %s: %w", key, err)
	}
	e.claims[c.path] = c
	return c, nil
}

// acquire is called with e.state held.
func (e *Engine) acquire(c *Claim) error {
	tmp, used := e.spare(), false
	defer func() {
		if used {
			return
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(c.path), tmp)); err == nil {
			e.spares = append(e.spares, tmp)
		}
	}()
	for range maxTries {
		err := createExclusive(e.room, c.path, tmp, c.data)
		used = err == nil
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		dead, judged, err := e.judge(c)
		if err != nil {
			return err
		}
		if !dead {
			continue
		}
		won, err := e.takeOver(c, filepath.Join(filepath.Dir(c.path), tmp), judged)
		if won || err != nil {
			return err
		}
	}
	return fmt.Errorf("its lock file changed %d times while being taken", maxTries)
}

// judge reads the lock file in the way. A living holder is a *HeldError; a file
// that is gone again is neither dead nor an error.
func (e *Engine) judge(c *Claim) (dead bool, content []byte, err error) {
	content, err = disk.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	h := decodeHolder(filepath.Base(c.path), content)
	if h.Damaged {
		dead, err = e.damagedIsDead(c.path)
	} else {
		alive, aerr := e.Alive(h.Engine)
		dead, err = !alive, aerr
	}
	if err == nil && !dead {
		err = &HeldError{Key: c.Key, Holder: h}
	}
	return dead, content, err
}

// Discard removes a lock file that cannot be read, once it is nobody's.
func (e *Engine) Discard(h Holder) error {
	path := filepath.Join(e.root, layout.ClaimsDir, h.File)
	err := e.guard.Held(func() error {
		data, err := disk.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !decodeHolder(h.File, data).Damaged {
			return nil
		}
		if err == nil {
			var dead bool
			if dead, err = e.damagedIsDead(path); dead {
				err = removeIfThere(path)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("clear a damaged claim: %w", err)
	}
	return nil
}

// takeOver replaces a dead engine's lock file if it still is what was judged.
// A crash in the middle leaves the dead one's file, or ours.
func (e *Engine) takeOver(c *Claim, tmp string, judged []byte) (won bool, err error) {
	err = e.guard.Held(func() error {
		now, err := disk.ReadFile(c.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(now, judged) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(tmp, c.data, filePerm); err != nil {
			return errors.Join(err, removeIfThere(tmp))
		}
		if err := os.Rename(tmp, c.path); err != nil {
			return errors.Join(err, removeIfThere(tmp))
		}
		won = true
		return nil
	})
	if won {
		e.forget(c.path)
	}
	return won, err
}

// Lost is closed when a Beat has found that the claim is no longer this
// engine's. Work on the step may stop then; its completion would be refused.
func (c *Claim) Lost() <-chan struct{} { return c.lost }

// Release gives the step back. It removes the lock file only while it is still
// this claim's; releasing twice is fine.
func (c *Claim) Release() error {
	c.engine.state.Lock()
	defer c.engine.state.Unlock()
	if c.engine.claims[c.path] != c {
		return nil
	}
	if err := c.remove(); err != nil {
		return fmt.Errorf("release %s: %w", c.Key, err)
	}
	delete(c.engine.claims, c.path)
	return nil
}

// remove takes the lock file away, and keeps it as a spare. It is called with the
// engine's state held.
func (c *Claim) remove() error {
	e := c.engine
	return e.guard.Held(func() error {
		ours, err := c.stillOurs()
		if err != nil || !ours {
			return err
		}
		if e.closed || len(e.spares) >= maxSpares {
			return removeIfThere(c.path)
		}
		spare := e.newSpare()
		if err := e.room.Move(filepath.Base(c.path), spare, false); err != nil {
			return err
		}
		e.spares = append(e.spares, spare)
		return nil
	})
}

// maxSpares bounds the files kept for the next claims.
const maxSpares = 256

// spare names a file of the claims' folder for the next claim, from an earlier one or new.
func (e *Engine) spare() string {
	if n := len(e.spares); n > 0 {
		name := e.spares[n-1]
		e.spares = e.spares[:n-1]
		return name
	}
	return e.newSpare()
}

func (e *Engine) newSpare() string {
	e.serial++
	return tempName(string(e.id), e.serial)
}

func (c *Claim) stillOurs() (bool, error) {
	ours, err := c.engine.room.Holds(filepath.Base(c.path), c.data)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return ours, err
}

func (c *Claim) markLost() { c.loseOnce.Do(func() { close(c.lost) }) }
