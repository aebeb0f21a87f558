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

// claims are the trailers that the commits of events alone have.
var claims = [...]string{"Bagpipe-Step", "Bagpipe-Workflow", "Bagpipe-From", "Bagpipe-Attempt", "Bagpipe-Children", "Bagpipe-Intent"}

// claimed gives the first trailer by which a commit tells of an event, and its item; "": it tells of none.
func claimed(c gitstore.Commit) (key, value string, id layout.ItemID) {
	for _, key := range claims {
		if value := trailer(c, key); value != "" && (key != "Bagpipe-Intent" || value != "catalog") {
			id, err := layout.ParseItemID(trailer(c, "Bagpipe-Item"))
			if err != nil {
				id = ""
			}
			return key, ledger.Clip(value, 100), id
		}
	}
	return "", "", ""
}

// tellsOfNone finds a commit that tells of an event and, as why says, holds none.
func (c *committed) tellsOfNone(why string) {
	switch key, value, id := claimed(c.Commit); key {
	case "":
	case "Bagpipe-Step":
		c.find(Words, id, "it tells of a step, and "+why)
	default:
		c.find(Words, id, fmt.Sprintf("its trailer %s says %q, and it %s", key, value, why))
	}
}

// tells holds the trailers of a person's commit, where it has some that tell of an event, against what it changes.
func (c *committed) tells() error {
	key, value, id := claimed(c.Commit)
	if key == "" {
		return nil
	}
	if !slices.Contains(c.items, id) {
		c.find(Words, id, fmt.Sprintf("its trailer %s says %q, and it changes no record of the item that it names", key, value))
		return nil
	}
	before, now, err := c.records(id)
	if err != nil {
		return err
	}
	x := &state.Execution{Item: id}
	if before.Execution != nil {
		x, err = state.Decode(before.Execution)
	}
	y, errNow := state.Decode(now.Execution)
	if err != nil || errNow != nil {
		return nil //nolint:nilerr // guard tells of it
	}
	for _, key := range untold(c.Commit, differ(x, y), y) {
		c.find(Words, id, fmt.Sprintf("its trailer %s says %q, and it holds no such event", key, ledger.Clip(trailer(c.Commit, key), 100)))
	}
	return nil
}

// untold gives the trailers of a commit that tell of what is not in d, which it adds to a record that is y now. One that was
// brought along may have come to a record that went on, and so From and other statuses are not held against it.
func untold(c gitstore.Commit, d difference, y *state.Execution) (keys []string) {
	attempt, intent := trailer(c, "Bagpipe-Attempt"), trailer(c, "Bagpipe-Intent")
	is := func(a attemptAt) bool {
		return a.key.String() == attempt && string(a.step) == trailer(c, "Bagpipe-Step") && a.workflow == trailer(c, "Bagpipe-Workflow")
	}
	at := slices.IndexFunc(d.attempts, is)
	switch to := state.Status(trailer(c, "Bagpipe-To")); {
	case len(d.workflows) > 0:
	case attempt != "" && at < 0:
		keys = append(keys, "Bagpipe-Attempt")
	case attempt != "" && (to == state.Completed || to == state.Skipped || to == state.Failed) && d.attempts[at].is.State != to:
		keys = append(keys, "Bagpipe-To")
	case len(d.attempts)+len(d.intents) == 0:
		key, _, _ := claimed(c)
		keys = append(keys, key)
	}
	if intent != "" && !slices.ContainsFunc(d.intents, func(k layout.IntentKey) bool { return y.Intents[k].Kind == intent }) {
		keys = append(keys, "Bagpipe-Intent")
	}
	return slices.Compact(keys)
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
