package audit

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// spoken are the trailers that say what happened; others, such as Bagpipe-Source, only add to
// it and are told by no record.
var spoken = [...]string{"Bagpipe-Item", "Bagpipe-Workflow", "Bagpipe-Step", "Bagpipe-From", "Bagpipe-To", "Bagpipe-Attempt", "Bagpipe-Children", "Bagpipe-Intent"}

// misworded says what a commit's subject and trailers say otherwise than its records.
func misworded(c gitstore.Commit, id layout.ItemID, m layout.Manifest, h happened, tr state.Transition, site layout.Name) (wrong []string) {
	message := expected(id, m, h, tr)
	want := trailersOf(message)
	for i, key := range spoken {
		is, should := trailer(c, key), want[i]
		if key == "Bagpipe-Item" && is == "" || is != should {
			wrong = append(wrong, fmt.Sprintf("its trailer %s says %q, and the records %q", key, ledger.Clip(is, 100), ledger.Clip(should, 100)))
		}
	}
	subject, _, _ := strings.Cut(message, "\n")
	if c.Subject != subject {
		wrong = append(wrong, fmt.Sprintf("its subject is %q, by the records %q", ledger.Clip(c.Subject, 200), ledger.Clip(subject, 200)))
	}
	if agent := trailer(c, "Bagpipe-Agent"); h.by != "" && agent != ledger.OneLine(h.by, 300) {
		wrong = append(wrong, fmt.Sprintf("its agent is %q, by the records %q", ledger.Clip(agent, 100), ledger.Clip(h.by, 100)))
	}
	if runner := runnerOf(h.event); runner != "" && site != state.SiteOf(runner) {
		wrong = append(wrong, fmt.Sprintf("it is of site %q, and its attempt of %q", site, state.SiteOf(runner)))
	}
	return wrong
}

// pretended says what a commit that leaves the execution record alone tells of a transition. One
// that retires or recalls its item has a Bagpipe-To of its own.
func pretended(c gitstore.Commit, retires bool) (wrong []string) {
	for _, key := range spoken {
		if is := trailer(c, key); is != "" && key != "Bagpipe-Item" && !(retires && key == "Bagpipe-To") && !(key == "Bagpipe-Intent" && is == "catalog") {
			wrong = append(wrong, fmt.Sprintf("its trailer %s says %q, and the execution record is as it was", key, ledger.Clip(is, 100)))
		}
	}
	of, did, _ := strings.Cut(c.Subject, ": ")
	did, _, _ = strings.Cut(did, " ")
	switch state.Status(did) {
	case state.Waiting, state.InProgress, state.Completed, state.Skipped, state.Failed, state.Deferred:
		if of != "set" && of != "fixity" { // "set: KEY", and what a check of fixity found
			wrong = append(wrong, fmt.Sprintf("its subject is %q, and the execution record is as it was", ledger.Clip(c.Subject, 200)))
		}
	}
	return wrong
}

// answerMisworded says what the words of an answer tell otherwise than that it is one.
func answerMisworded(c gitstore.Commit, id layout.ItemID) (wrong []string) {
	of, _, _ := strings.Cut(c.Subject, " "+string(id)+" (")
	want := map[string]string{"Bagpipe-Item": string(id)}
	switch of {
	case "hold: held":
		want["Bagpipe-Intent"], want["Bagpipe-To"] = state.HoldIntent, "held"
	case "answer: completed", "answer: reverted":
	default:
		wrong = append(wrong, fmt.Sprintf("its subject is %q, and it is an answer for item %s", ledger.Clip(c.Subject, 200), id))
	}
	for _, key := range spoken {
		if is := trailer(c, key); is != want[key] {
			wrong = append(wrong, fmt.Sprintf("its trailer %s says %q, and that of such an answer %q", key, ledger.Clip(is, 100), want[key]))
		}
	}
	return wrong
}

// expected is the message of an event's commit, without foreign text and what others add.
func expected(id layout.ItemID, m layout.Manifest, h happened, tr state.Transition) string {
	switch h.kind {
	case "":
		return ledger.StepMessage(id, m, tr, "", "")
	case state.HoldIntent:
		return ledger.IntentMessage(id, m, h.kind, "held", "", "")
	case state.RemarkIntent:
		return ledger.IntentMessage(id, m, h.kind, "noted", "", "")
	case state.DisposeIntent:
		return ledger.IntentMessage(id, m, h.kind, "begun", "", "")
	case state.ReleaseIntent:
		return ledger.IntentMessage(id, m, h.kind, "released", "", "")
	case state.OwnIntent:
		return ledger.IntentMessage(id, m, h.kind, "given to "+string(h.event.(state.Own).Site), "", "")
	}
	return ledger.FlowMessage(id, m, h.kind, tr, "", "")
}

// trailersOf gives what a message says of each of the spoken.
func trailersOf(message string) (found [len(spoken)]string) {
	for line := range strings.Lines(message) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			if i := slices.Index(spoken[:], key); i >= 0 {
				found[i] = value
			}
		}
	}
	return found
}

// trailer is the value of a trailer; of several the last, as Git reads configuration.
func trailer(c gitstore.Commit, key string) (value string) {
	for _, t := range c.Trailers {
		if t.Key == key {
			value = t.Value
		}
	}
	return value
}

// runnerOf is who is at work by an event that begins something.
func runnerOf(e state.Event) string {
	switch e := e.(type) {
	case state.Claim:
		return e.Runner
	case state.Start:
		return e.Runner
	}
	return ""
}

// asides is how far the clock of an event and that of its commit, which are one, may be apart:
// the store may have been full for a while.
const asides = 24 * time.Hour

// timeOf is when an event happened, by its clock; zero of an end, which is put after the
// ends that a threshold has counted.
func timeOf(e state.Event) time.Time {
	at := reflect.ValueOf(e).FieldByName("At")
	if _, ended := e.(state.End); ended || !at.IsValid() {
		return time.Time{}
	}
	t, _ := at.Interface().(time.Time)
	return t
}
