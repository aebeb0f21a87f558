package state

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"bagpipe/layout"
)

const controlsSchema = 1

// ControlStatus is how a step of a workflow stands over all items.
type ControlStatus string

// The statuses of controls; the package comment has their meaning.
const (
	StepEnabled  ControlStatus = "enabled"
	StepDisabled ControlStatus = "disabled"
	StepStopped  ControlStatus = "stopped"
)

// Controls is controls/steps.json. The zero value has every step enabled.
type Controls struct {
	Steps map[Ref]Control
	rest  map[string]json.RawMessage
}

// Control is how one step stands.
type Control struct {
	Status   ControlStatus
	At       time.Time
	By       string
	Text     string
	CoolDown time.Duration
	Engine   layout.EngineID // stopped: whose run alone was; "": all that were at work
	Until    time.Time       // disabled: from when on one item is tried; zero: never
	Trial    *Trial
	rest     map[string]json.RawMessage
}

// Trial is the item a disabled step is tried with.
type Trial struct {
	Item     layout.ItemID `json:"item"`
	Workflow string        `json:"workflow"` // the run: accession.1
	At       time.Time     `json:"at"`
	rest     map[string]json.RawMessage
}

// controlJSON is a Control as written.
type controlJSON struct {
	Status   ControlStatus   `json:"status"`
	At       time.Time       `json:"at"`
	By       string          `json:"by"`
	Text     string          `json:"text"`
	Engine   layout.EngineID `json:"engine,omitempty"`
	CoolDown float64         `json:"coolDown,omitempty"`
	Until    time.Time       `json:"until,omitzero"`
	Trial    any             `json:"trial,omitempty"`
}

var controlKeys = []string{"status", "at", "by", "text", "engine", "coolDown", "until", "trial"}

var trialKeys = []string{"item", "workflow", "at"}

// DecodeControls reads controls/steps.json; nil data is no controls. A newer
// schema is a *layout.SchemaError.
func DecodeControls(data []byte) (*Controls, error) {
	c := &Controls{Steps: map[Ref]Control{}}
	if data == nil {
		return c, nil
	}
	var head struct {
		Schema int                        `json:"schema"`
		Steps  map[string]json.RawMessage `json:"steps"`
	}
	if err := decodeKeeping(data, &head, &c.rest, "schema", "steps"); err != nil {
		return nil, fmt.Errorf("%s: %w", layout.ControlsFile, err)
	}
	if head.Schema > controlsSchema {
		return nil, &layout.SchemaError{File: layout.ControlsFile, Schema: head.Schema, Known: controlsSchema}
	}
	if head.Schema < 1 {
		return nil, fmt.Errorf("%s: schema: expected %d", layout.ControlsFile, controlsSchema)
	}
	for name, raw := range head.Steps {
		ref, err := ParseStepRef(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", layout.ControlsFile, err)
		}
		control, err := decodeControl(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", layout.ControlsFile, name, err)
		}
		c.Steps[ref] = control
	}
	return c, nil
}

func decodeControl(raw []byte) (Control, error) {
	var c Control
	var trial json.RawMessage
	j := controlJSON{Trial: &trial}
	if err := decodeKeeping(raw, &j, &c.rest, controlKeys...); err != nil {
		return c, err
	}
	switch j.Status {
	case StepEnabled, StepDisabled, StepStopped:
	default:
		return c, fmt.Errorf("status %q: expected enabled, disabled or stopped", j.Status)
	}
	if j.At.IsZero() {
		return c, fmt.Errorf("at: expected a time")
	}
	if j.CoolDown < 0 || j.CoolDown > float64(maxCoolDown/time.Second) {
		return c, fmt.Errorf("coolDown: expected seconds from 0 up")
	}
	if len(trial) > 0 && string(trial) != "null" {
		t := &Trial{}
		if err := decodeKeeping(trial, t, &t.rest, trialKeys...); err != nil {
			return c, fmt.Errorf("trial: %w", err)
		}
		c.Trial = t
		if _, err := layout.ParseItemID(string(t.Item)); err != nil {
			return c, fmt.Errorf("trial: %w", err)
		}
		if _, n := Instance(t.Workflow); n < 1 {
			return c, fmt.Errorf("trial: workflow %q: expected a run, as accession.1", t.Workflow)
		}
	}
	c.Status, c.At, c.By, c.Text, c.Engine, c.Until = j.Status, j.At.UTC(), j.By, j.Text, j.Engine, j.Until.UTC()
	c.CoolDown = time.Duration(j.CoolDown * float64(time.Second))
	return c, nil
}

const maxCoolDown = 100 * 365 * 24 * time.Hour

// decodeKeeping reads an object into v and keeps the keys that are not known.
func decodeKeeping(data []byte, v any, rest *map[string]json.RawMessage, known ...string) error {
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	if err := json.Unmarshal(data, rest); err != nil {
		return err
	}
	if *rest == nil {
		return fmt.Errorf("expected an object, not null")
	}
	for _, k := range known {
		delete(*rest, k)
	}
	return nil
}

// Encode writes the file.
func (c *Controls) Encode() ([]byte, error) {
	steps := map[string]any{}
	for ref, control := range c.Steps {
		j := controlJSON{Status: control.Status, At: roundTime(control.At), By: control.By, Text: control.Text, Engine: control.Engine,
			CoolDown: control.CoolDown.Seconds(), Until: roundTime(control.Until)}
		if t := control.Trial; t != nil {
			trial, err := withRest(t, t.rest)
			if err != nil {
				return nil, err
			}
			j.Trial = trial
		}
		doc, err := withRest(j, control.rest)
		if err != nil {
			return nil, err
		}
		steps[ref.String()] = doc
	}
	doc := map[string]any{"schema": controlsSchema, "steps": steps}
	for k, v := range c.rest {
		doc[k] = v
	}
	return layout.EncodeJSON(doc)
}

// withRest is v with the keys that were not known when it was read.
func withRest(v any, rest map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	doc := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	for k, v := range rest {
		doc[k] = v
	}
	return doc, nil
}

// ParseStepRef reads WORKFLOW/STEP.
func ParseStepRef(s string) (Ref, error) {
	workflow, step, ok := strings.Cut(s, "/")
	if !ok {
		return Ref{}, fmt.Errorf("step %q: expected WORKFLOW/STEP", s)
	}
	if _, err := layout.ParseName(workflow); err != nil {
		return Ref{}, err
	}
	name, err := layout.ParseName(step)
	return Ref{Workflow: workflow, Step: name}, err
}

// Since is from when on a step's failures count; zero: from the beginning.
func (c *Controls) Since(ref Ref) time.Time { return c.Steps[ref].At }

// Any reports whether some step is out of the flow.
func (c *Controls) Any() bool {
	for _, control := range c.Steps {
		if control.Status == StepDisabled {
			return true
		}
	}
	return false
}

// Disabled reports whether a step is out of the flow.
func (c *Controls) Disabled(ref Ref) bool { return c.Steps[ref].Status == StepDisabled }

// Set says how a step stands, and forgets what was said before but for keys that
// are not known. It answers false, and changes nothing, when the step stands so
// already; one that stopped runs may stop them again.
func (c *Controls) Set(ref Ref, to Control) bool {
	was, listed := c.Steps[ref]
	same := was.Status == to.Status || !listed && to.Status == StepEnabled
	if same && to.Status != StepStopped {
		return false
	}
	to.At, to.Until, to.rest = roundTime(to.At), roundTime(to.Until), was.rest
	c.Steps[ref] = to
	return true
}

// Open says whether an item's claim of a disabled step is taken at now; stands
// reports whether a trial does. why says why not.
func (c Control) Open(item layout.ItemID, run string, now time.Time, stands func(*Trial) bool) (open bool, why string) {
	switch {
	case c.Status != StepDisabled:
		return true, ""
	case c.Trial != nil && c.Trial.Item == item && c.Trial.Workflow == run:
		return true, ""
	case c.Trial != nil && stands(c.Trial):
		return false, c.Why() + "; item " + c.Trial.Item.Short() + " is being tried"
	case c.Until.IsZero():
		return false, c.Why()
	case now.Before(c.Until):
		return false, c.Why() + "; one item is tried at " + layout.FormatTime(c.Until)
	}
	return true, ""
}

// Why says by whom, since when and why a step is disabled.
func (c Control) Why() string {
	return strings.TrimSuffix(fmt.Sprintf("the step is disabled by %s since %s: %s", c.By, layout.FormatTime(c.At), c.Text), ": ")
}

// Try makes an item the trial of a step; false when it is already.
func (c *Controls) Try(ref Ref, item layout.ItemID, run string, now time.Time) bool {
	control := c.Steps[ref]
	if t := control.Trial; t != nil && t.Item == item && t.Workflow == run {
		return false
	}
	control.Trial = &Trial{Item: item, Workflow: run, At: roundTime(now)}
	c.Steps[ref] = control
	return true
}

// EndTrial ends a trial of that item, if there is one: the step is enabled, or the
// next trial is a cool-down later.
func (c *Controls) EndTrial(ref Ref, item layout.ItemID, run string, well bool, by string, now time.Time) bool {
	control := c.Steps[ref]
	t := control.Trial
	if control.Status != StepDisabled || t == nil || t.Item != item || t.Workflow != run {
		return false
	}
	if well {
		return c.Set(ref, Control{Status: StepEnabled, At: now, By: by, Text: "item " + string(item) + " was tried, and it went well"})
	}
	control.Trial, control.Until = nil, time.Time{}
	if control.CoolDown > 0 {
		control.Until = roundTime(now.Add(control.CoolDown))
	}
	c.Steps[ref] = control
	return true
}
