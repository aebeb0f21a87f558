package bags

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
)

// readerSlack is what a Go process needs beside what it decodes into: its heap
// grows by 64 MiB at a time, and all of it counts from the first byte.
const readerSlack = 256 << 20

// Reader does the work of a reading process, if this is one: ok is then true, and
// the program must end with the code at once. Every program that unpacks 7z or
// rar begins with it; in any other case it returns without having done anything.
func Reader() (code int, ok bool) {
	conf := os.Getenv(readerEnv)
	if conf == "" {
		return 0, false
	}
	if err := readFor(conf); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func readFor(conf string) error {
	var plan readerPlan
	if err := json.Unmarshal([]byte(conf), &plan); err != nil {
		return fmt.Errorf("archive reader: %w", err)
	}
	if err := confine(plan.Memory); err != nil {
		return fmt.Errorf("archive reader: %w", err)
	}
	go func() {
		// The parent holds the other end and writes nothing.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	out := frameWriter{bufio.NewWriterSize(os.NewFile(readerOut, "answers"), copyBuffer)}
	src := &sources{}
	for i, size := range plan.Volumes {
		src.add(os.NewFile(uintptr(readerVolumes+i), "volume "+strconv.Itoa(i+1)), size)
	}
	err := decode(plan, src, out)
	if cause := src.failure(); cause != nil {
		err = readerFault(cause.Error())
	}
	return errors.Join(out.last(err), out.w.Flush())
}

// confine bounds what this process may do. RLIMIT_DATA counts what is written to,
// and not the address space that Go's runtime reserves; a file may not be written
// at all.
func confine(memory int64) error {
	limit := uint64(memory + readerSlack)
	for _, l := range []struct {
		what int
		max  uint64
	}{{unix.RLIMIT_DATA, limit}, {unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_CORE, 0}} {
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: l.max, Max: l.max}); err != nil {
			return fmt.Errorf("limit the reader: %w", err)
		}
	}
	debug.SetMemoryLimit(memory)
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// decode calls the format's decoder. A decoder that panics has met an archive that
// its author did not think of.
func decode(plan readerPlan, src *sources, out frameWriter) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Rule: RuleDamaged, Detail: fmt.Sprintf("the archive is damaged (%v)", p)}
		}
	}()
	switch plan.Format {
	case SevenZip:
		return decodeSevenZip(plan, src, out)
	case Rar:
		return decodeRar(plan, src, out)
	}
	return fmt.Errorf("archive reader: no decoder for %q", plan.Format)
}

// last says how it ended.
func (f frameWriter) last(err error) error {
	var e *Error
	var m readerFault
	switch {
	case err == nil:
		return f.put(frameFinal, nil)
	case errors.As(err, &e):
		return f.putJSON(frameBroken, frameError{[]byte(e.Member), e.Rule, e.Detail})
	case errors.As(err, &m):
		return f.put(frameMachine, []byte(m))
	}
	return err
}

// sources are the volumes of one archive as one run of bytes, and one by one.
type sources struct {
	all  []*source
	size []int64
}

func (s *sources) add(f *os.File, size int64) {
	s.all, s.size = append(s.all, &source{f: f}), append(s.size, size)
}

func (s *sources) total() (n int64) {
	for _, v := range s.size {
		n += v
	}
	return n
}

func (s *sources) failure() error {
	for _, v := range s.all {
		if err := v.failure(); err != nil {
			return err
		}
	}
	return nil
}

// ReadAt reads over the ends of volumes.
func (s *sources) ReadAt(p []byte, off int64) (n int, err error) {
	for i, v := range s.all {
		if off >= s.size[i] {
			off -= s.size[i]
			continue
		}
		got, err := v.ReadAt(p[n:n+int(min(int64(len(p)-n), s.size[i]-off))], off)
		n, off = n+got, 0
		if n == len(p) || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// volumeFS gives the volumes one after the other, whatever they are asked for by:
// a decoder's idea of their names is not followed.
type volumeFS struct {
	s    *sources
	next int
}

func (v *volumeFS) Open(name string) (fs.File, error) {
	i := v.next
	if i == len(v.s.all) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	v.next++
	return volumeFile{io.NewSectionReader(v.s.all[i], 0, v.s.size[i])}, nil
}

type volumeFile struct{ *io.SectionReader }

func (volumeFile) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (volumeFile) Close() error               { return nil }
