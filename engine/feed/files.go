package feed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"bagpipe/layout/disk"
)

// errDamaged is a file that is to be built anew.
var errDamaged = errors.New("the feeds' files are damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// journal is one file of lines; at is how far it was read, turn the highest that wrote one.
type journal struct {
	path string
	at   int64
	turn int
}

// fences reports whether a line is of a turn that was over when it was written: whoever wrote it
// had lost the lock, as file systems that are shared may take it away.
func (j *journal) fences(turn int) bool {
	if turn < j.turn {
		return true
	}
	j.turn = turn
	return false
}

// takeTurn counts those who held the lock of the folder, which is the caller's.
func (f *Feeds) takeTurn() (int, error) {
	data, err := os.ReadFile(f.file("turn"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	last, bad := strconv.Atoi(string(bytes.TrimSpace(data)))
	if bad != nil { // none, or cut: above all that wrote here
		if last = f.journal.turn; f.journal.at == 0 {
			err := f.load()
			if err != nil && !errors.Is(err, errDamaged) {
				return 0, err
			}
		}
		for n := range f.parts {
			last = max(last, f.parts[n].turn, f.journal.turn)
		}
	}
	return last + 1, os.WriteFile(f.file("turn"), fmt.Appendf(nil, "%d\n", last+1), 0o666)
}

// read gives the lines that were added since. A last line that is not whole is cut off: its
// writer was killed, and holds no lock any more.
func (j *journal) read(each func(line []byte) error) (err error) {
	file, err := os.OpenFile(j.path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) && j.at == 0 {
		return nil
	}
	if err != nil {
		return errors.Join(errDamaged, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info, err := file.Stat(); err != nil || info.Size() < j.at {
		return errors.Join(errDamaged, err)
	}
	data, err := io.ReadAll(io.NewSectionReader(file, j.at, 1<<40))
	if err != nil {
		return err
	}
	for len(data) > 0 {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return file.Truncate(j.at)
		}
		sum, payload, _ := bytes.Cut(line, []byte(" "))
		if string(sum) != fmt.Sprintf("%08x", crc32.Checksum(payload, castagnoli)) {
			return fmt.Errorf("%s at byte %d: %w", j.path, j.at, errDamaged)
		}
		if err := each(payload); err != nil {
			return fmt.Errorf("%s at byte %d: %w", j.path, j.at, errors.Join(errDamaged, err))
		}
		j.at, data = j.at+int64(len(line))+1, rest
	}
	return nil
}

// line encodes v as one.
func line(v any) ([]byte, error) {
	payload, err := json.Marshal(v)
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(payload, castagnoli), payload), err
}

// add appends a line. It is on disk when add returns; a crash before that leaves a part of
// it, which the next read cuts off.
func (j *journal) add(v any) (err error) {
	data, err := line(v)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(data); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	j.at += int64(len(data))
	return nil
}

// replace writes the file anew with one line.
func (j *journal) replace(v any) error {
	data, err := line(v)
	if err != nil {
		return err
	}
	tmp := j.path + ".new"
	if err := disk.WriteFile(tmp, data, 0o666); err != nil {
		return err
	}
	j.at = int64(len(data))
	return disk.Rename(tmp, j.path)
}

func (f *Feeds) file(name string) string { return filepath.Join(f.dir, name) }
