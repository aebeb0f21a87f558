package wire

import (
	"net/url"
	"strings"

	"bagpipe/layout"
)

// The words of subjects: bagpipe.ask.WORKER.VERB, bagpipe.tell.WORKER and
// bagpipe.offer.CLASS. A worker may publish below its own name alone, so the name in a subject
// is proven.
const (
	Stream      = "BAGPIPE_OFFERS"
	asks        = "bagpipe.ask."
	tells       = "bagpipe.tell."
	offers      = "bagpipe.offer."
	AllAsks     = asks + ">"
	AllOffers   = offers + ">"
	KeysSubject = "bagpipe.broker.keys"
	PingSubject = "bagpipe.broker.ping"
	VerbHello   = "hello"
	VerbClaim   = "claim"
	VerbEnd     = "end"
	VerbBeat    = "beat"
	VerbControl = "control"
)

// subjectName is a worker's name in a subject: names may hold dots, which part words there.
func subjectName(name layout.Name) string { return strings.ReplaceAll(string(name), ".", "~") }

// AskSubject is where a worker asks.
func AskSubject(name layout.Name, verb string) string { return asks + subjectName(name) + "." + verb }

// AsksOf is where all workers ask one thing.
func AsksOf(verb string) string { return asks + "*." + verb }

// TellSubject is where a worker hears orders between its beats.
func TellSubject(name layout.Name) string { return tells + subjectName(name) }

// InboxPrefix is where a worker hears answers.
func InboxPrefix(name layout.Name) string { return "_INBOX_" + subjectName(name) }

// Asker reads who asks what from a subject.
func Asker(subject string) (name layout.Name, verb string, ok bool) {
	rest, ok := strings.CutPrefix(subject, asks)
	who, verb, found := strings.Cut(rest, ".")
	name, err := layout.ParseName(strings.ReplaceAll(who, "~", "."))
	return name, verb, ok && found && err == nil
}

// OfferSubject is where the offers of a class are.
func OfferSubject(class string) string { return offers + class }

// Ref is the attempt that h names.
func (h Held) Ref() (ref layout.AttemptRef, err error) {
	if ref.Item, err = layout.ParseItemID(string(h.Item)); err != nil {
		return ref, err
	}
	if ref.Step, err = layout.ParseName(string(h.Step)); err != nil {
		return ref, err
	}
	ref.Workflow = h.Workflow
	ref.Key, err = layout.ParseAttemptKey(h.Attempt)
	return ref, err
}

// HeldOf names an attempt.
func HeldOf(ref layout.AttemptRef, nonce string) Held {
	return Held{Item: ref.Item, Workflow: ref.Workflow, Step: ref.Step, Attempt: ref.Key.String(), Nonce: nonce}
}

// Path is the attempt's below the transfer's URL.
func (h Held) Path() string {
	return strings.Join([]string{"attempts", string(h.Item), url.PathEscape(h.Workflow), string(h.Step), h.Attempt}, "/")
}

// LogFile is the name below scratch by which a worker sends what its robot printed.
const LogFile = ".bagpipe-log"

// ServerName is whom the certificates of an engine are for: its own authority makes them, so
// they hold at whatever address workers reach it.
const ServerName = "engine.bagpipe"
