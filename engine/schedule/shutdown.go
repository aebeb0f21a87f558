package schedule

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"

	"bagpipe/engine/claim"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// shutdownFile names the engines that are to end, as JSON. It is of no use to those that begin
// later, which have other names.
const shutdownFile = ".bagpipe/shutdown"

// Shutdown stops all schedules, and has the engines that live now end when no firing of theirs
// runs any more. A crash between leaves schedules stopped: the call is made again.
func (k *Keeper) Shutdown(ctx context.Context) (stopped, engines int, err error) {
	for _, name := range slices.Sorted(maps.Keys(k.settings.Current().Schedules)) {
		changed, err := k.Set(ctx, k.ledger.ByPerson(), name, Order{Status: Stopped})
		if err != nil {
			return stopped, 0, err
		}
		if changed {
			stopped++
		}
	}
	all, err := claim.NewObserver(k.ledger.Root, k.ledger.Host, k.ledger.Clock).Engines()
	if err != nil {
		return stopped, 0, err
	}
	ids := []layout.EngineID{}
	for _, e := range all {
		if e.Alive && e.Worker == "" && e.ID != k.ledger.ID {
			ids = append(ids, e.ID)
		}
	}
	data, err := layout.EncodeJSON(ids)
	if err != nil {
		return stopped, 0, err
	}
	return stopped, len(ids), disk.WriteFile(k.ledger.Path(shutdownFile), data, 0o666)
}

// IsShutDown reports whether this engine is to end, and no firing of its runs any more.
func (k *Keeper) IsShutDown() bool {
	data, err := os.ReadFile(k.ledger.Path(shutdownFile))
	if err != nil {
		return false // there is none, which is so of most
	}
	var ids []layout.EngineID
	if json.Unmarshal(data, &ids) != nil || !slices.Contains(ids, k.ledger.ID) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.running) == 0
}

// Checked is what is wrong with one schedule.
type Checked struct {
	Name  string
	File  *layout.FileError // the mistake in its file, which is not in force
	Wrong []string          // of what is in force
}

// Check looks at the files of schedules, and at what those in force name, of all or of some.
func (k *Keeper) Check(names []string) (all []Checked, err error) {
	book := k.settings.Current()
	broken, err := broken(k.settings)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = slices.AppendSeq(slices.Collect(maps.Keys(book.Schedules)), maps.Keys(broken))
		slices.Sort(names)
		names = slices.Compact(names)
	}
	for _, name := range names {
		if broken[name] != nil && book.Schedules[name] == nil {
			all = append(all, Checked{Name: name, File: broken[name]})
			continue
		}
		row, err := k.Row(name)
		if err != nil {
			return nil, err
		}
		s, c := book.Schedules[name], Checked{Name: name, File: broken[name]}
		if row.Trouble != "" {
			c.Wrong = append(c.Wrong, row.Trouble)
		}
		if s.Do.Queue != "" {
			if _, err := k.queueOf(s); err != nil {
				c.Wrong = append(c.Wrong, err.Error())
			}
		}
		if s.Do.Start != "" && book.Workflows[s.Do.Start] == nil {
			c.Wrong = append(c.Wrong, "no workflow \""+s.Do.Start+"\" in workflows/")
		}
		if s.Do.Scan != "" && book.Catalogs[layout.Name(s.Do.Scan)] == nil {
			c.Wrong = append(c.Wrong, "no catalog \""+s.Do.Scan+"\" in catalogs/")
		}
		if err := settings.FindProgram(k.ledger.Root, s.Do.Command); err != nil {
			c.Wrong = append(c.Wrong, err.Error())
		}
		if len(row.Firings) == 0 && row.Next.IsZero() && row.Status == Started && s.Trigger.Queue == "" {
			c.Wrong = append(c.Wrong, "it is never due: "+s.Trigger.String())
		}
		all = append(all, c)
	}
	return all, nil
}
