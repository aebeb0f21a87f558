package wire

import (
	"encoding/json"
	"strings"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/layout"
)

// Hello is a worker's first message, and its answer when it is asked again.
type Hello struct {
	Head
	Name   layout.Name     `json:"name"`
	Engine layout.EngineID `json:"engine"` // drawn at each start; part of its attempts' keys
	Build  string          `json:"build"`  // of the program
	Machine
	Labels   map[string]string `json:"labels,omitempty"`
	Slots    int               `json:"slots"`
	Prefetch int               `json:"prefetch,omitempty"`
	Robots   []Robot           `json:"robots"`
	Shared   string            `json:"shared,omitempty"` // what the probe file held; "" where it was not found
}

// Machine is what a worker works on.
type Machine struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	CPUs    int    `json:"cpus"`
	Memory  int64  `json:"memory"`  // bytes
	Scratch int64  `json:"scratch"` // bytes free when it came in
}

// Robot is one robot that a worker offers.
type Robot struct {
	Name       layout.Name    `json:"name"`
	Builtin    bool           `json:"builtin,omitempty"`
	Version    string         `json:"version,omitempty"`
	Digest     string         `json:"digest,omitempty"` // SHA-256 of a program
	Instances  int            `json:"instances,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Takes      []string       `json:"takes,omitempty"` // of a built-in robot: the parameters that steps may give it
}

// Welcome answers a Hello. Refused says why the worker is not wanted; then nothing else counts.
type Welcome struct {
	Head
	Refused  string        `json:"refused,omitempty"`
	Lease    time.Duration `json:"lease"`
	Transfer string        `json:"transfer"` // the URL below which calls are
	Probe    string        `json:"probe"`    // a file's path, which a worker that shares the file system finds
	Orders   Orders        `json:"orders"`
}

// Orders answer a beat, and are sent in between where something changed.
type Orders struct {
	Head
	Classes []string      `json:"classes,omitempty"` // to pull from
	Epoch   string        `json:"epoch,omitempty"`   // of the stream
	Lease   time.Duration `json:"lease,omitempty"`   // as in Welcome; it may have changed
	Lost    []Held        `json:"lost,omitempty"`    // these are no longer the worker's; their robots are to be ended
	Cancel  []Held        `json:"cancel,omitempty"`  // a person cancelled these
	Drain   bool          `json:"drain,omitempty"`   // begin nothing more, and end when nothing runs
	Stop    bool          `json:"stop,omitempty"`    // begin nothing more, and stay
	Unknown bool          `json:"unknown,omitempty"` // say hello again
	Beat    bool          `json:"beat,omitempty"`    // beat now
	Try     *Grant        `json:"try,omitempty"`     // run a step again that is not to be committed
	Meet    bool          `json:"meet,omitempty"`    // say hello now: who it is, and what it offers
}

// Offer says in the stream that a step is ready.
type Offer struct {
	Head
	ID    string `json:"id"`
	Epoch string `json:"epoch"`
}

// Claim asks for the step of an offer.
type Claim struct {
	Head
	Engine layout.EngineID `json:"engine"`
	Offer  string          `json:"offer"`
	Epoch  string          `json:"epoch"`
}

// Grant answers a Claim. Gone says that there is nothing to do: the offer is another's or was
// withdrawn, and its message is to be acknowledged. Return says that the offer stands for
// others, and its message is to be given back. Again says that the claim is being made, and is
// to be asked for once more. Cleared says that the engine takes the offer's message out of the
// stream, with others: the worker does not acknowledge it.
type Grant struct {
	Head
	Gone    bool          `json:"gone,omitempty"`
	Return  string        `json:"return,omitempty"` // why
	Again   bool          `json:"again,omitempty"`
	Cleared bool          `json:"cleared,omitempty"`
	Held    Held          `json:"held,omitzero"`
	Lease   time.Duration `json:"lease"`
	Alone   bool          `json:"alone,omitempty"` // the robot is ended when the engine is not heard for two thirds of a lease
	Call    *Call         `json:"call,omitempty"`  // with the bytes of all files; nil: it is to be fetched
}

// Ending tells how an attempt ended, where that is small enough for a message.
type Ending struct {
	Head
	Held Held            `json:"held"`
	End  json.RawMessage `json:"end"` // an End
}

// Taken answers an Ending as HTTPS would: with a status code, and below it what a Problem says.
type Taken struct {
	Problem
	Code int `json:"code"`
}

// Held names an attempt and proves that it was granted.
type Held struct {
	Item     layout.ItemID `json:"item"`
	Workflow string        `json:"workflow"`
	Step     layout.Name   `json:"step"`
	Attempt  string        `json:"attempt"`
	Nonce    string        `json:"nonce,omitempty"`
}

// Beat says what runs on a worker. The leases of these attempts begin anew.
type Beat struct {
	Head
	Engine  layout.EngineID `json:"engine"`
	State   string          `json:"state"`
	Running []Told          `json:"running,omitempty"`
}

// mostNote bounds the note of an attempt in a beat, and mostTold the attempts that one beat tells of: however many
// run, no beat is larger than a message may be. Names are far shorter than what is left for each.
const mostNote, mostTold = 300, 100

// Parts gives the beats that tell of the same, each small enough for a message. A beat of which nothing runs is
// one.
func (b Beat) Parts() (parts []Beat) {
	all := b.Running
	for i := range all {
		all[i].Note = clipped(all[i].Note, mostNote)
	}
	for {
		b.Running = all[:min(len(all), mostTold)]
		parts, all = append(parts, b), all[len(b.Running):]
		if len(all) == 0 {
			return parts
		}
	}
}

// clipped is the beginning of a text, whole letters of it.
func clipped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Told is an attempt and how far it has come.
type Told struct {
	Held
	Note    string `json:"note,omitempty"`
	Percent int    `json:"percent"` // -1: not told
}

// Call is all that a robot is given, but for the bytes.
type Call struct {
	Head
	Collection layout.Name       `json:"collection"`
	Label      []byte            `json:"label"`
	Robot      layout.Name       `json:"robot"`
	Arguments  []string          `json:"arguments,omitempty"`
	With       map[string]any    `json:"with,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Timeout    time.Duration     `json:"timeout,omitempty"`
	Limits     archive.Limits    `json:"limits"`
	Profiles   [][]byte          `json:"profiles,omitempty"` // of BagIt, as files
	Records
	Sent
}

// Records are the item's records, as committed.
type Records struct {
	SourceKind string          `json:"sourceKind"`
	Manifest   json.RawMessage `json:"manifest"`
	Inventory  json.RawMessage `json:"inventory,omitempty"`
	Execution  json.RawMessage `json:"execution"`
}

// Sent is where the item's files are: in folders that are shared, or to be fetched.
type Sent struct {
	Shared  bool     `json:"shared,omitempty"` // Dir and Scratch are the worker's to use
	Bare    bool     `json:"bare,omitempty"`   // the robot works by the records alone, and there are no folders
	Dir     string   `json:"dir,omitempty"`    // the item's folder
	Scratch string   `json:"scratch,omitempty"`
	Source  string   `json:"source"`            // where it is shared the whole path, else below the item's folder
	Content string   `json:"content"`           // as Source
	Place   string   `json:"place,omitempty"`   // where the object stays that was not taken in
	Beside  []string `json:"beside,omitempty"`  // names of the files beside it that are the object together with it
	Folders []string `json:"folders,omitempty"` // to be made, also where they are empty
	Files   []File   `json:"files,omitempty"`
}

// File is one file to be sent, in either direction. Paths are percent-encoded.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Exec   bool   `json:"exec,omitempty"`
	Data   []byte `json:"data,omitempty"` // the bytes, where they are few; nil: they come apart
}

// MostCarried bounds the bytes of files that a message carries, and MostFiles the files.
const MostCarried, MostFiles = 24 << 10, 100

// Problem is the body of an HTTPS answer that is not 2xx.
type Problem struct {
	Head
	Text string   `json:"text"`
	Want []string `json:"want,omitempty"` // files of an end that are missing or not as announced
}

// Refusal answers a message that is not understood.
type Refusal struct {
	Head
	Refused string `json:"refused"`
}

// Keys tells brokers which keys come in, by public key. A broker drops the connections of those
// that are not listed any more.
type Keys struct {
	Head
	Keys map[string]layout.Name `json:"keys"`
}

// BrokerTold is what a broker says of itself.
type BrokerTold struct {
	Head
	Name string `json:"name"`
	Sync string `json:"sync"`
}

// Control is an order of the workspace's operator: drain, stop or resume a worker, forget one
// that is gone, make the stream anew, or compare it with what is on offer.
type Control struct {
	Head
	Verb   string      `json:"verb"`
	Worker layout.Name `json:"worker,omitempty"`

	Item    layout.ItemID `json:"item,omitempty"` // of a test, as what follows
	Step    string        `json:"step,omitempty"`
	Attempt string        `json:"attempt,omitempty"`
}

// Controlled answers a Control.
type Controlled struct {
	Head
	Refused string `json:"refused,omitempty"`
	Text    string `json:"text,omitempty"`
}

// The verbs of a Control, and the name that the operator's key has.
const (
	Drain    = "drain"
	Stop     = "stop"
	Resume   = "resume"
	Forget   = "forget"
	Meta     = "meta"
	Test     = "test"
	Verify   = "verify"
	Rebuild  = "rebuild"
	Operator = layout.Name("operator")
)
