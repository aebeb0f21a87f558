package steps

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The rules are: an attempt's progress is the last whole line of the file
// "progress" in its scratch folder. Its robot appends lines, others may; who looks
// reads the end of the file, so that neither how often it is written nor how long
// it grows costs the engine anything. The package comment has the form of a line.

const (
	progressFile = "progress"

	maxProgressFile = 64 << 10 // begun anew beyond it
	progressTail    = 4 << 10  // of the file, the part that is read
	maxProgressNote = 200
)

// Progress is how far an attempt has come, in its robot's own words.
type Progress struct {
	At      time.Time
	Note    string
	Percent int // 0 to 100; -1: not told
}

// line is the form Progress has in the file.
func (p Progress) line() string {
	note := strings.Join(strings.Fields(p.Note), " ")
	if p.Percent < 0 {
		return note + "\n"
	}
	return strings.TrimSpace(strconv.Itoa(p.Percent)+"% "+note) + "\n"
}

// parseProgress reads a line: PERCENT% NOTE, or NOTE alone.
func parseProgress(line string) Progress {
	line = strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD"))
	first, note, _ := strings.Cut(line, " ")
	p := Progress{Note: line, Percent: -1}
	if number, ok := strings.CutSuffix(first, "%"); ok {
		if f, err := strconv.ParseFloat(number, 64); err == nil && f >= 0 && f <= 100 {
			p.Percent, p.Note = int(f), strings.TrimSpace(note)
		}
	}
	if len(p.Note) > maxProgressNote {
		p.Note = strings.ToValidUTF8(p.Note[:maxProgressNote], "") + "…"
	}
	return p
}

// ReadProgress gives what was last told in a scratch folder; ok is false when
// nothing was, or the file is none a robot should make.
func ReadProgress(scratch string) (p Progress, ok bool) {
	f, err := os.OpenFile(filepath.Join(scratch, progressFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return p, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return p, false
	}
	tail := make([]byte, min(info.Size(), progressTail))
	n, err := f.ReadAt(tail, info.Size()-int64(len(tail)))
	if err != nil && !errors.Is(err, io.EOF) {
		return p, false
	}
	lines := bytes.Split(tail[:n], []byte("\n"))
	for i := len(lines) - 2; i >= 0; i-- { // what follows the last line end is unfinished
		if len(bytes.TrimSpace(lines[i])) > 0 {
			p = parseProgress(string(lines[i]))
			p.At = info.ModTime().UTC().Truncate(time.Second)
			return p, true
		}
	}
	return p, false
}

// TellProgress appends to the file, as a robot would. The folder must be there.
func TellProgress(scratch string, p Progress) (err error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	f, err := os.OpenFile(filepath.Join(scratch, progressFile), flags, 0o666)
	if err != nil {
		return fmt.Errorf("tell progress: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxProgressFile {
		if err := f.Truncate(0); err != nil {
			return err
		}
	}
	_, err = f.WriteString(p.line())
	return err
}

// tellEvery is how often at most a built-in robot's bytes become a line.
const tellEvery = time.Second

// TellBytes lets a built-in robot's bytes be told; the function it gives ends
// that. A robot that ends sooner than tellEvery tells nothing, nor does one without scratch folder.
func TellBytes(c *Call) (stop func()) {
	if c.Scratch == "" {
		return func() {}
	}
	t := &teller{call: c}
	c.Progress = t.note
	return t.stop
}

// teller writes the newest count, now and then.
type teller struct {
	call *Call

	mu          sync.Mutex // guards the rest
	done, total int64
	told        int64
	timer       *time.Timer
	ended       bool
}

func (t *teller) note(done, total int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done, t.total = done, total
	if t.timer == nil && !t.ended {
		t.timer = time.AfterFunc(tellEvery, t.tell)
	}
}

func (t *teller) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	if t.told != t.done {
		t.told = t.done
		p := Progress{Note: fmt.Sprintf("%d bytes", t.done), Percent: -1}
		if t.total > 0 {
			p.Note, p.Percent = fmt.Sprintf("%d of %d bytes", t.done, t.total), int(min(100, 100*float64(t.done)/float64(t.total)))
		}
		if t.call.MakeScratch() == nil {
			_ = TellProgress(t.call.Scratch, p) // told or not, the step goes on
		}
	}
	t.timer.Reset(tellEvery)
}

func (t *teller) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
