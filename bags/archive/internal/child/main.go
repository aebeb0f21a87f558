package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"bagpipe/bags/archive/internal/frames"
	"bagpipe/bags/archive/internal/rars"
	"bagpipe/bags/archive/internal/sevens"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/confined"
	"bagpipe/bags/files"
)

// Main does the work of the process that reads one archive, if this process is one: ok
// is then true, and the program must end with the code at once. In any other process it
// does nothing.
func Main() (code int, ok bool) {
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
	var plan Plan
	if err := json.Unmarshal([]byte(conf), &plan); err != nil {
		return fmt.Errorf("archive reader: %w", err)
	}
	if err := confined.Limit(plan.Memory); err != nil {
		return fmt.Errorf("archive reader: %w", err)
	}
	go func() {
		// The parent holds the other end and writes nothing.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	out := frames.Writer{W: bufio.NewWriterSize(os.NewFile(readerOut, "answers"), files.CopyBuffer)}
	src := &volume.Joined{}
	for i, size := range plan.Volumes {
		src.Add(os.NewFile(uintptr(readerVolumes+i), "volume "+strconv.Itoa(i+1)), size)
	}
	err := decode(plan, src, out)
	if cause := src.Failure(); cause != nil {
		err = frames.Fault(cause.Error())
	}
	return errors.Join(out.Last(err), out.W.Flush())
}

// decode calls the format's decoder. A decoder that panics has met an archive that
// its author did not think of.
func decode(plan Plan, src *volume.Joined, out frames.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &files.Error{Rule: files.RuleDamaged, Detail: fmt.Sprintf("the archive is damaged (%v)", p)}
		}
	}()
	switch plan.Format {
	case "7z":
		return sevens.Decode(plan.Data, src, out)
	case "rar":
		return rars.Decode(plan.Memory, plan.Data, src, out)
	}
	return fmt.Errorf("archive reader: no decoder for %q", plan.Format)
}
