package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bagpipe/layout"
)

// Want is what a step asks of a worker.
type Want struct {
	Robot   layout.Name
	Builtin bool
	Labels  map[string]string
	Name    layout.Name // "": any worker
}

// Class names the queue of the steps that want the same.
func (w Want) Class() string { return Class(w.Robot, w.Labels, w.Name) }

// String is the robot and what the worker must have: ocr-robot with gpu=a100 on w7.
func (w Want) String() string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(w.Labels)) {
		words = append(words, key+"="+w.Labels[key])
	}
	text := string(w.Robot)
	if len(words) > 0 {
		text += " with " + strings.Join(words, ", ")
	}
	if w.Name != "" {
		text += " on " + string(w.Name)
	}
	return text
}

// Met reports whether a worker has what is wanted. Built-in robots need the build of the
// engine.
func (w Want) Met(name layout.Name, workerBuild, build string, labels map[string]string, robots []Robot) bool {
	if w.Name != "" && w.Name != name {
		return false
	}
	for key, value := range w.Labels {
		if labels[key] != value {
			return false
		}
	}
	return slices.ContainsFunc(robots, func(o Robot) bool {
		return o.Name == w.Robot && o.Builtin == w.Builtin && (!o.Builtin || workerBuild == build)
	})
}

// Unmet says why a step that wants this waits: nobody serves workers, or none has it. "" is
// one that some worker could do.
func (w Want) Unmet(s Status, served bool) string {
	if !served {
		return fmt.Sprintf("needs %s at a worker, and no engine serves workers", w)
	}
	if s.Trouble != "" {
		return fmt.Sprintf("needs %s at a worker, and nothing is offered to workers: %s", w, s.Trouble)
	}
	connected, busy := 0, ""
	for _, one := range s.Workers {
		if one.State == "silent" {
			continue
		}
		connected++
		if w.Met(one.Name, one.Build, s.Build, one.Labels, one.Robots) {
			if one.State == "ready" {
				return ""
			}
			busy = fmt.Sprintf("%s has it, and is %s", one.Name, one.State)
		}
	}
	if busy != "" {
		return fmt.Sprintf("needs %s: %s", w, busy)
	}
	return fmt.Sprintf("needs %s: %s connected, none has it", w, layout.Count(connected, "worker"))
}
