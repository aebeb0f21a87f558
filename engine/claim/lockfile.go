package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// Holder is who holds a step, as its lock file says.
type Holder struct {
	Attempt  string          `json:"attempt"`
	BootID   string          `json:"bootId"`
	Engine   layout.EngineID `json:"engine"`
	Host     string          `json:"host"`
	Item     layout.ItemID   `json:"item"`
	PID      int             `json:"pid"`
	Schema   int             `json:"schema"`
	Since    time.Time       `json:"since"`
	Step     layout.Name     `json:"step"`
	Workflow string          `json:"workflow"`

	File    string `json:"-"` // name of the lock file
	Damaged bool   `json:"-"` // the file cannot be read; only File is known
}

// encodeHolder is encode, written by hand because it is written at every step.
func encodeHolder(h Holder) []byte {
	b := make([]byte, 0, 384)
	text := func(before, s string) {
		b = append(b, before...)
		for i := range len(s) {
			if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
				quoted, _ := json.Marshal(s) // a string always encodes
				b = append(b, quoted...)
				return
			}
		}
		b = append(append(append(b, '"'), s...), '"')
	}
	text("{\n  \"attempt\": ", h.Attempt)
	text(",\n  \"bootId\": ", h.BootID)
	text(",\n  \"engine\": ", string(h.Engine))
	text(",\n  \"host\": ", h.Host)
	text(",\n  \"item\": ", string(h.Item))
	b = strconv.AppendInt(append(b, ",\n  \"pid\": "...), int64(h.PID), 10)
	b = strconv.AppendInt(append(b, ",\n  \"schema\": "...), int64(h.Schema), 10)
	text(",\n  \"since\": ", h.Since.Format(time.RFC3339Nano))
	text(",\n  \"step\": ", string(h.Step))
	text(",\n  \"workflow\": ", h.Workflow)
	return append(b, "\n}\n"...)
}

// decodeHolder never fails: what is no claim is a damaged one.
func decodeHolder(file string, data []byte) Holder {
	var h Holder
	if err := json.Unmarshal(data, &h); err != nil {
		return Holder{File: file, Damaged: true}
	}
	if _, err := layout.ParseEngineID(string(h.Engine)); err != nil {
		return Holder{File: file, Damaged: true}
	}
	h.File = file
	return h
}

const lockSuffix = ".lock"

// List reads all lock files, sorted by name, dead or alive.
func List(root string) ([]Holder, error) {
	dir := filepath.Join(root, layout.ClaimsDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	var holders []Holder
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), lockSuffix) {
			continue
		}
		data, err := disk.ReadFile(filepath.Join(dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // released meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list claims: %w", err)
		}
		h := decodeHolder(entry.Name(), data)
		if !h.Damaged && (Key{h.Item, h.Workflow, h.Step}).file() != entry.Name() {
			continue // released meanwhile, and its file used for another step
		}
		holders = append(holders, h)
	}
	return holders, nil
}

// createExclusive makes path with data, or fails with fs.ErrExist. The file is
// complete when it appears: it is written as spare, a file of this engine's own in
// the same folder, room, that may be there from an earlier claim, and renamed. On
// failure spare may stay; after a kill a later Register removes it.
//
// The same few files are used again and again because making and removing one for
// each claim is slow: half a millisecond on ext4 without a journal, which passes
// over every inode that was freed in the last minute.
func createExclusive(room disk.Folder, path, spare string, data []byte) error {
	if err := room.Overwrite(spare, data, filePerm); err != nil {
		return err
	}
	err := room.Move(spare, filepath.Base(path), true)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	spare = filepath.Join(filepath.Dir(path), spare)
	err = os.Link(spare, path)
	_ = os.Remove(spare) // what stays is swept by a later Register
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		return createByOpen(path, data)
	}
	return err
}

// createByOpen serves file systems without hard links. A kill between the two
// calls leaves an empty file, which damagedIsDead judges.
func createByOpen(path string, data []byte) (err error) {
	f, err := disk.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, removeIfThere(path))
	}
	return nil
}
