package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"bagpipe/bags/archive/internal/frames"
	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/confined"
	"bagpipe/bags/files"

	"golang.org/x/sys/unix"
)

// 7z and rar are read by a process of their own (see package confined), which decodes and
// decides nothing: names, limits and check sums are looked at here.

// readerEnv holds a Plan in JSON.
const readerEnv = "BAGPIPE_ARCHIVE_READER"

// The reading process's files: the pipe it answers on, then the volumes.
const (
	readerOut     = 3
	readerVolumes = 4
)

// A Plan tells the process which archive to read, and within which memory.
type Plan struct {
	Format  string  `json:"format"`
	Memory  int64   `json:"memory"`
	Data    bool    `json:"data"`
	Volumes []int64 `json:"volumes"` // sizes
}

// CutShort gives the reason why the process ended without a last word.
func CutShort(died error, memory int64, n *notes.Notes) error {
	text := died.Error()
	if confined.Exhausted(text) {
		return n.Broken("", files.RuleMemory, fmt.Sprintf("reading this archive needs more than the %d bytes of memory allowed", memory), died)
	}
	if strings.Contains(text, "signal: killed") {
		return fmt.Errorf("unpack %s: the archive's reader was killed; is the machine out of memory?", n.Archive)
	}
	return n.Broken("", files.RuleDamaged, "the archive makes its reader fail: "+text, died)
}

// A Process reads one archive. It is used by the goroutine that started it.
type Process struct {
	cmd    *exec.Cmd
	out    *os.File
	in     io.Closer // its standard input, held open as long as it may run
	stderr *confined.Tail
	Frames *frames.Reader
}

// Start runs this program again, with the archive's files open and nothing else.
func Start(ctx context.Context, plan Plan, vols *volume.Volumes) (*Process, error) {
	if os.Getenv(readerEnv) != "" {
		return nil, errors.New("an archive's reader starts no other: this program does not call archive.Reader")
	}
	conf, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// A larger pipe is fewer switches between the two; without it they still work.
	_, _ = unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 1<<20)
	p := &Process{out: r}
	p.cmd, p.stderr = confined.Command(ctx, readerEnv, string(conf), append([]*os.File{w}, vols.Files...)...)
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	p.Frames = &frames.Reader{R: bufio.NewReaderSize(r, 64<<10), Names: !plan.Data}
	return p, nil
}

// Wait ends the process, if it has not ended, and gives the reason of its end.
func (p *Process) Wait() error {
	_ = p.out.Close() // it writes no more: a broken pipe ends it
	_ = p.in.Close()
	err := p.cmd.Wait()
	if text := p.stderr.String(); text != "" {
		return errors.New(text)
	}
	if err == nil {
		return frames.ErrCut
	}
	return err
}
