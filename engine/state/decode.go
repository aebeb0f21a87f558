package state

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// Decode reads execution.json. Statuses are not read: Compute writes them. A
// newer schema is a *layout.SchemaError.
func Decode(data []byte) (*Execution, error) {
	if x, ok := plain(data); ok {
		return x, nil
	}
	return decode(data)
}

// decode is the long way, for whatever Encode does not write.
func decode(data []byte) (*Execution, error) {
	if !utf8.Valid(data) { // two keys could become one when it is written
		return nil, errors.New("read " + layout.ExecutionJSON + ": not UTF-8")
	}
	if !gjson.ValidBytes(data) {
		return nil, errors.New("read " + layout.ExecutionJSON + ": not JSON")
	}
	r := reader{}
	root := gjson.ParseBytes(data)
	if schema := root.Get("schema"); schema.Int() > executionSchema {
		return nil, &layout.SchemaError{File: layout.ExecutionJSON, Schema: int(schema.Int()), Known: executionSchema}
	} else if schema.Exists() && (schema.Type != gjson.Number || schema.Num != executionSchema) {
		return nil, fmt.Errorf("read %s: schema %.40s: want %d", layout.ExecutionJSON, schema.Raw, executionSchema)
	}
	x := r.execution(root)
	if r.err != nil {
		return nil, fmt.Errorf("read %s: %w", layout.ExecutionJSON, r.err)
	}
	return x, nil
}

// reader reads objects by their known keys and keeps the others; the first
// error stays.
type reader struct{ err error }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// object calls known for each key; a key it refuses is kept in the result.
func (r *reader) object(what string, v gjson.Result, known func(key string, v gjson.Result) bool) (rest unknown) {
	if !v.IsObject() {
		r.fail("%s is not an object", what)
		return nil
	}
	v.ForEach(func(k, v gjson.Result) bool {
		if !known(k.Str, v) {
			if rest == nil {
				rest = unknown{}
			}
			rest[k.Str] = v.Raw
		}
		return true
	})
	return rest
}

func (r *reader) time(v gjson.Result) time.Time {
	t, err := time.Parse(time.RFC3339Nano, v.Str)
	if err != nil {
		r.fail("time %s: want RFC 3339", v.Raw)
	}
	return t.UTC()
}

func (r *reader) took(v gjson.Result) time.Duration {
	if v.Type != gjson.Number || v.Num < 0 || v.Num > 1e9 {
		r.fail("%.40s: want seconds", v.Raw)
	}
	return time.Duration(math.Round(v.Num*1000)) * time.Millisecond
}

func (r *reader) text(v gjson.Result) string {
	if v.Type != gjson.String {
		r.fail("%.40s: want a string", v.Raw)
	}
	return v.Str
}

func (r *reader) attemptKey(s string) layout.AttemptKey {
	k, err := layout.ParseAttemptKey(s)
	if err != nil {
		r.fail("%w", err)
	}
	return k
}

func (r *reader) name(s string) layout.Name {
	n, err := layout.ParseName(s)
	if err != nil {
		r.fail("%w", err)
	}
	return n
}

func (r *reader) execution(v gjson.Result) *Execution {
	x := &Execution{Intents: map[layout.IntentKey]Intent{}, Milestones: map[layout.Name]time.Time{}, Workflows: map[string]*Workflow{}}
	x.unknown = r.object("the record", v, func(k string, v gjson.Result) bool {
		switch k {
		case "item":
			id, err := layout.ParseItemID(v.Str)
			if err != nil {
				r.fail("%w", err)
			}
			x.Item = id
		case "schema":
		case "intents":
			r.object("intents", v, func(k string, v gjson.Result) bool {
				x.Intents[layout.IntentKey(k)] = r.intent(v)
				return true
			})
		case "milestones":
			r.object("milestones", v, func(k string, v gjson.Result) bool {
				x.Milestones[r.name(k)] = r.time(v)
				return true
			})
		case "workflows":
			r.object("workflows", v, func(k string, v gjson.Result) bool {
				x.Workflows[k] = r.workflow(v)
				return true
			})
		default:
			return false
		}
		return true
	})
	if x.Item == "" {
		r.fail("no item")
	}
	for name := range x.Workflows {
		x.settleDigest(name)
	}
	return x
}

func (r *reader) intent(v gjson.Result) (i Intent) {
	i.unknown = r.object("an intent", v, func(k string, v gjson.Result) bool {
		switch k {
		case "kind":
			i.Kind = r.text(v)
		case "at":
			i.At = r.time(v)
		case "by":
			i.By = r.text(v)
		case "text":
			i.Text = r.text(v)
		case "workflow":
			i.Workflow = r.text(v)
		case "step":
			i.Step = r.name(v.Str)
		case "attempt":
			i.Attempt = r.attemptKey(v.Str)
		case "target":
			i.Target = layout.IntentKey(r.text(v))
		case "digest":
			i.Digest = r.text(v)
		case "site":
			i.Site = r.name(v.Str)
		default:
			return false
		}
		return true
	})
	return i
}

func (r *reader) workflow(v gjson.Result) *Workflow {
	w := &Workflow{Steps: map[layout.Name]*StepRecord{}}
	w.unknown = r.object("a workflow", v, func(k string, v gjson.Result) bool {
		switch k {
		case "definition":
			r.definition(w, v)
		case "startedBy":
			w.StartedBy = r.text(v)
		case "created":
			w.Created = r.time(v)
		case "notBefore":
			w.NotBefore = r.time(v)
		case "status", "started", "ended":
		case "skip":
			w.Skip = map[layout.Name]string{}
			r.object("skip", v, func(k string, v gjson.Result) bool {
				w.Skip[r.name(k)] = r.text(v)
				return true
			})
		case "steps":
			r.object("steps", v, func(k string, v gjson.Result) bool {
				w.Steps[r.name(k)] = r.step(v)
				return true
			})
		default:
			return false
		}
		return true
	})
	if w.Name == "" || w.StartedWith == "" {
		r.fail("a workflow without its definition")
	}
	return w
}

// definition reads what a workflow was started with; by what it runs follows from the
// intents.
func (r *reader) definition(w *Workflow, v gjson.Result) {
	first := ""
	w.unknownOfDefinition = r.object("a definition", v, func(k string, v gjson.Result) bool {
		switch k {
		case "name":
			w.Name = r.text(v)
		case "digest":
			w.StartedWith = r.text(v)
		case "startedWith":
			first = r.text(v)
		default:
			return false
		}
		return true
	})
	w.StartedWith = cmp.Or(first, w.StartedWith)
}

func (r *reader) step(v gjson.Result) *StepRecord {
	s := &StepRecord{Attempts: map[layout.AttemptKey]Attempt{}}
	s.unknown = r.object("a step", v, func(k string, v gjson.Result) bool {
		switch k {
		case "status":
		case "attempts":
			r.object("attempts", v, func(k string, v gjson.Result) bool {
				s.Attempts[r.attemptKey(k)] = r.attempt(v)
				return true
			})
		default:
			return false
		}
		return true
	})
	return s
}

func (r *reader) attempt(v gjson.Result) (a Attempt) {
	a.unknown = r.object("an attempt", v, func(k string, v gjson.Result) bool {
		switch k {
		case "state":
			a.State = Status(r.text(v))
			switch a.State {
			case InProgress, Completed, Skipped, Failed, Deferred:
			default:
				r.fail("attempt state %q", a.State)
			}
		case "kind":
			a.Kind = r.text(v)
		case "claimed":
			a.Claimed = r.time(v)
		case "started":
			a.Started = r.time(v)
		case "ended":
			a.Ended = r.time(v)
		case "elapsed":
			a.Elapsed = v.Num
		case "notBefore":
			a.NotBefore = r.time(v)
		case "runner":
			a.Runner = r.text(v)
		case "version":
			a.Version = r.text(v)
		case "by":
			a.By = r.text(v)
		case "message":
			a.Message = r.text(v)
		case "text":
			a.Text = r.text(v)
		case "progress":
			a.Progress = r.progress(v)
		case "children":
			if a.Children = int(v.Num); v.Type != gjson.Number || float64(a.Children) != v.Num || a.Children < 0 {
				r.fail("children %.40s: want a number from 0 up", v.Raw)
			}
		case "chosen":
			a.Chosen = []layout.Name{}
			v.ForEach(func(_, v gjson.Result) bool {
				a.Chosen = append(a.Chosen, r.name(r.text(v)))
				return r.err == nil
			})
		case "inputs":
			a.Inputs = r.text(v)
		case "outputs":
			a.Outputs = r.text(v)
		case "content":
			if a.Content = v.Bool(); !v.IsBool() {
				r.fail("content %.40s: want true or false", v.Raw)
			}
		case "cpu":
			a.CPU = r.took(v)
		case "idle":
			a.Idle = r.took(v)
		default:
			return false
		}
		return true
	})
	if a.State == "" {
		r.fail("an attempt without a state")
	}
	return a
}

func (r *reader) progress(v gjson.Result) *Progress {
	p := &Progress{Percent: -1}
	p.unknown = r.object("progress", v, func(k string, v gjson.Result) bool {
		switch k {
		case "at":
			p.At = r.time(v)
		case "note":
			p.Note = r.text(v)
		case "percent":
			p.Percent = int(v.Num)
		default:
			return false
		}
		return true
	})
	return p
}
