package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Registered is an engine that has a file. Host, PID and Since are empty when
// the file is damaged.
type Registered struct {
	ID    layout.EngineID
	Host  string
	PID   int
	Since time.Time
	Alive bool
	// Worker names a guest: a worker on another machine, whose attempts an engine of this
	// workspace commits. "" is an engine.
	Worker string
}

// Engines lists the engines that have registered and not closed, sorted by
// identifier, dead ones included.
func (o *Observer) Engines() ([]Registered, error) {
	entries, err := os.ReadDir(filepath.Join(o.root, layout.EnginesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("which engines run is for the workspace's account and its group to see: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("list engines: %w", err)
	}
	var all []Registered
	for _, entry := range entries {
		id, err := layout.ParseEngineID(entry.Name())
		if err != nil {
			continue // a temporary file
		}
		data, err := disk.ReadFile(enginePath(o.root, id))
		if errors.Is(err, fs.ErrNotExist) {
			continue // closed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list engines: %w", err)
		}
		alive, err := o.Alive(id)
		if err != nil {
			return nil, err
		}
		var info engineInfo
		if json.Unmarshal(data, &info) != nil {
			info = engineInfo{}
		}
		all = append(all, Registered{ID: id, Host: info.Host, PID: info.PID, Since: info.Since, Alive: alive, Worker: info.Worker})
	}
	return all, nil
}
