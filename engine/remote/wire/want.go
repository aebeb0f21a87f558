package wire

import (
	"crypto/sha256"
	"encoding/hex"
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
	Version string // of the robot; "": any
	Labels  map[string]string
	Name    layout.Name // "": any worker
}

// Class names the queue of the steps that want the same: ROBOT-DIGEST. The engine tells workers their classes, so no other release
// need name them alike.
func (w Want) Class() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", w.Robot, w.Version, w.Name)
	for _, key := range slices.Sorted(maps.Keys(w.Labels)) {
		fmt.Fprintf(h, " %q=%q", key, w.Labels[key])
	}
	return strings.ReplaceAll(string(w.Robot), ".", "~") + "-" + hex.EncodeToString(h.Sum(nil)[:6])
}

// String is the robot and what the worker must have: ocr-robot 4.1 with gpu=a100 on w7. A built-in robot's version is the engine's.
func (w Want) String() string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(w.Labels)) {
		words = append(words, key+"="+w.Labels[key])
	}
	text := string(w.Robot)
	if w.Version != "" && !w.Builtin {
		text += " " + w.Version
	}
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
		return o.Name == w.Robot && o.Builtin == w.Builtin && (!o.Builtin || workerBuild == build) && (w.Version == "" || o.Version == w.Version)
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
