package attempt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/layout"
)

// coldDir holds one file for each step that an engine does not claim: the reason.
func (r *rooms) coldDir(id layout.EngineID) string {
	return filepath.Join(r.ledger.Path(layout.WarmUpDir), string(id))
}

// liveDir is where persistent programs are started.
func (r *rooms) liveDir() string {
	return filepath.Join(r.ledger.Path(layout.ScratchDir), string(r.ledger.ID), "robots")
}

// noteCold keeps the reason why a step is not claimed; nil removes it.
func (r *rooms) noteCold(id queue.StepID, failed error) {
	dir := r.coldDir(r.ledger.ID)
	file := filepath.Join(dir, id.Workflow+"."+string(id.Step))
	var err error
	if failed == nil {
		if err = os.Remove(file); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	} else if err = os.MkdirAll(dir, 0o777); err == nil {
		err = os.WriteFile(file, []byte(coldLine(id, failed)+"\n"), 0o666)
	}
	if err != nil {
		r.ledger.Log.Warn("note a warm-up", "step", id.String(), "err", err)
	}
}

// Why a step is not claimed.
const (
	coldWarmUp = "warm-up failed"
	coldRobot  = "robot did not get ready" // one that lives
)

// coldLine says why a step is not claimed.
func coldLine(id queue.StepID, failed error) string {
	return fmt.Sprintf("%s: the %s", id, ledger.OneLine(failed.Error(), 500))
}

// forgetColdSteps removes the reasons of engines that have ended: the run that begins has its own.
func (r *rooms) forgetColdSteps() {
	entries, _ := os.ReadDir(r.ledger.Path(layout.WarmUpDir)) // not there: nothing to remove
	for _, entry := range entries {
		if lives, err := r.ledger.Seat.Alive(layout.EngineID(entry.Name())); err == nil && !lives {
			_ = os.RemoveAll(r.coldDir(layout.EngineID(entry.Name()))) // the next run will
		}
	}
}

// ColdSteps lists the steps that engines do not claim, with the reasons, or did not to their end,
// until the next run begins.
func (a *Attempts) ColdSteps(alive map[layout.EngineID]bool) []string {
	out := []string{}
	engines, _ := os.ReadDir(a.ledger.Path(layout.WarmUpDir)) // not there: nothing is cold
	for _, entry := range engines {
		text := "engine %s does not claim %s"
		if !alive[layout.EngineID(entry.Name())] {
			text = "engine %s, which has ended, did not claim %s"
		}
		notes, _ := filepath.Glob(filepath.Join(a.coldDir(layout.EngineID(entry.Name())), "*"))
		for _, note := range notes {
			if reason, err := os.ReadFile(note); err == nil {
				out = append(out, fmt.Sprintf(text, entry.Name(), ledger.OneLine(string(reason), 600)))
			}
		}
	}
	return out
}
