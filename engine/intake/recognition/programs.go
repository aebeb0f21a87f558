package recognition

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/recognise"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/steps/live"
)

// The rules are: a rule's program speaks as a persistent robot does. It is started when it is
// first asked, asked about one drop after the other, and ended with the engine; two are asked at
// once. Limits of the settings bound its time for each drop, and its memory.

const (
	askedAtOnce   = 2
	programTime   = 30 * time.Second
	programMemory = 1 << 30
)

func (re *Recogniser) newPrograms() *live.Instances {
	return &live.Instances{Dir: filepath.Join(re.ledger.Path(layout.ScratchDir), string(re.ledger.ID), "rules"), Now: re.ledger.Now,
		Backoff: func(failures int) time.Duration {
			return min(time.Duration(failures)*100*time.Millisecond, 5*time.Second)
		}}
}

// Close ends the programs of rules.
func (re *Recogniser) Close() { re.programs.Close() }

// Asking gives how the programs of rules are asked.
func (re *Recogniser) Asking(s *settings.Settings) recognise.Options {
	limits := s.ArchiveLimits()
	return recognise.Options{Limits: limits, Ask: func(ctx context.Context, a recognise.Asked) (said recognise.Said, err error) {
		select {
		case re.turn <- struct{}{}:
			defer func() { <-re.turn }()
		case <-ctx.Done():
			return said, ctx.Err()
		}
		most := min(cmp.Or(limits.Time, programTime), programTime)
		ctx, cancel := context.WithTimeoutCause(ctx, most, errors.New("it took longer than "+most.String()))
		defer cancel()
		dir := re.programs.Dir
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return said, err
		}
		scratch, err := os.MkdirTemp(dir, "drop-")
		if err != nil {
			return said, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
		_, name, _ := strings.Cut(a.Rule, "/")
		argv := a.Argv
		if strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
			argv = append([]string{re.ledger.Path(argv[0])}, argv[1:]...)
		}
		spec := &live.Spec{Name: a.Rule, Step: layout.Name(name), Argv: argv, Environment: os.Environ(), Memory: max(limits.Memory, programMemory),
			Take: func(data json.RawMessage) error {
				d := json.NewDecoder(bytes.NewReader(data))
				d.DisallowUnknownFields()
				if err := d.Decode(&said); err != nil {
					return fmt.Errorf("its answer: %w", err)
				}
				return nil
			}}
		call := &steps.Call{Label: a.Name, Collection: a.Collection, Step: spec.Step, Folders: steps.Folders{Dir: a.Path, Source: a.Path, Content: a.Path, Scratch: scratch}}
		_, err = re.programs.Run(ctx, spec, call)
		return said, err
	}}
}
