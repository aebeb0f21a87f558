package warrant

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/audience"
	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

const schema = 1

// Proposal is disposals/KEY.json.
type Proposal struct {
	Schema    int                         `json:"schema"`
	Items     map[layout.ItemID]Described `json:"items"`
	Reason    string                      `json:"reason"`
	Authority string                      `json:"authority,omitempty"`
	By        string                      `json:"by"`
	At        time.Time                   `json:"at"`
}

// Described is what a proposal says of an item, for those who read it.
type Described struct {
	Collection layout.Name `json:"collection"`
	Label      string      `json:"label"`
	Rule       string      `json:"rule,omitempty"` // of retention, by which it is due
}

// Voice is disposals/KEY/ADDRESS.json.
type Voice struct {
	Schema   int    `json:"schema"`
	Proposal string `json:"proposal"` // the digest of KEY.json
	Says     string `json:"says"`
	Text     string `json:"text,omitempty"`
}

// What a person says of a proposal.
const (
	Approved = "approved"
	Refused  = "refused"
)

// Path is where a proposal stands.
func Path(key string) string { return layout.DisposalsDir + "/" + key + ".json" }

// VoicePath is where somebody's word on a proposal stands.
func VoicePath(key, address string) string {
	return layout.DisposalsDir + "/" + key + "/" + layout.EncodePath(strings.ToLower(address)) + ".json"
}

// DigestOf is sha256:HEX of a proposal's file.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Said is one person's word.
type Said struct {
	Person string `json:"person"`
	Text   string `json:"text,omitempty"`
}

// Standing is a proposal, and what was said of it, as of a commit.
type Standing struct {
	Key string `json:"key"`
	Proposal
	Digest   string   `json:"digest"`
	Proposer string   `json:"proposer"`
	Approved []Said   `json:"approved"`
	Refused  []Said   `json:"refused"`
	Void     []string `json:"void,omitempty"` // what does not count, and why
}

// History is what of a store is asked; *gitstore.Store is one.
type History interface {
	History(ctx context.Context, o gitstore.HistoryOptions) iter.Seq2[gitstore.Commit, error]
	At(h gitstore.Hash) (gitstore.View, error)
}

// Keys lists the proposals of a commit, in order.
func Keys(v gitstore.View) (keys []string, err error) {
	entries, err := v.List(layout.DisposalsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if key, is := strings.CutSuffix(e.Name, ".json"); is && !e.IsDir {
			keys = append(keys, key)
		}
	}
	return keys, err
}

// Read reads a proposal and what was said of it. One that is not there is fault.NotFound.
func Read(ctx context.Context, h History, v gitstore.View, key string) (*Standing, error) {
	data, err := v.ReadFile(Path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, fmt.Sprintf("no proposal %q in %s/", key, layout.DisposalsDir))
	}
	if err != nil {
		return nil, err
	}
	s := &Standing{Key: key, Digest: DigestOf(data), Approved: []Said{}, Refused: []Said{}}
	if err := json.Unmarshal(data, &s.Proposal); err != nil {
		return nil, fmt.Errorf("read %s: %w", Path(key), err)
	}
	if s.Schema > schema {
		return nil, &layout.SchemaError{File: Path(key), Schema: s.Schema, Known: schema}
	}
	book, err := people(v)
	if err != nil {
		return nil, err
	}
	r := reading{h, v, book}
	by, err := r.authors(ctx, Path(key), data, nil)
	if err != nil {
		return nil, err
	}
	if len(by) > 0 {
		s.Proposer = by[0]
	}
	return s, r.voices(ctx, s)
}

// reading is one look at a proposal.
type reading struct {
	h    History
	v    gitstore.View
	book *audience.Book
}

// people reads who has which addresses. A broken file counts as not there.
func people(v gitstore.View) (*audience.Book, error) {
	book := audience.New()
	entries, err := v.List(audience.PeopleDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir || !strings.HasSuffix(e.Name, ".yaml") {
			continue
		}
		data, err := v.ReadFile(audience.PeopleDir + "/" + e.Name)
		if err != nil {
			return nil, err
		}
		_ = book.Add(audience.PeopleDir+"/"+e.Name, data) // who wrote it is told by check
	}
	return book, nil
}

// People gives the person of an address, as of a commit: the name in feeds/people, or the
// address itself.
func People(v gitstore.View) (func(address string) string, error) {
	book, err := people(v)
	if err != nil {
		return nil, err
	}
	return book.Named, nil
}

// authors are the persons who made a file what it is, the last first; with enough, no more
// are looked for once that says so.
func (r reading) authors(ctx context.Context, path string, data []byte, enough func(address string) bool) (persons []string, err error) {
	for c, err := range r.h.History(ctx, gitstore.HistoryOptions{Path: path, From: r.v.Commit()}) {
		if err != nil {
			return nil, err
		}
		if len(c.Parents) > 1 { // whoever joins says nothing
			continue
		}
		at, err := r.h.At(c.Hash)
		if err != nil {
			return nil, err
		}
		was, err := at.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if !slices.Equal(was, data) {
			continue
		}
		address := strings.ToLower(strings.TrimSpace(c.Author.Email))
		persons = append(persons, r.book.Named(address))
		if enough == nil || enough(address) {
			break
		}
	}
	return persons, nil
}

// voices reads what people said.
func (r reading) voices(ctx context.Context, s *Standing) error {
	dir := layout.DisposalsDir + "/" + s.Key
	entries, err := r.v.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	heard := map[string]bool{}
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name, ".json")
		address, bad := layout.DecodePath(name)
		if e.IsDir || !is || bad != nil {
			continue
		}
		data, err := r.v.ReadFile(dir + "/" + e.Name)
		if err != nil {
			return err
		}
		person, why, v, err := r.voice(ctx, s, dir+"/"+e.Name, address, data)
		if err != nil {
			return err
		}
		said := Said{person, v.Text}
		switch {
		case why == "" && v.Says == Approved && heard[person]:
			why = "the same person said so by another address"
		case why == "" && v.Says == Refused:
			s.Refused = append(s.Refused, said)
		case why == "":
			s.Approved = append(s.Approved, said)
		}
		if why != "" {
			s.Void = append(s.Void, address+": "+why)
			continue
		}
		heard[person] = true
	}
	return nil
}

// voice reads one person's word; why: it does not count.
func (r reading) voice(ctx context.Context, s *Standing, path, address string, data []byte) (person, why string, v Voice, err error) {
	if json.Unmarshal(data, &v) != nil || v.Schema != schema || v.Says != Approved && v.Says != Refused {
		return "", "it says neither approved nor refused", v, nil
	}
	person = r.book.Named(address)
	if v.Proposal != s.Digest {
		return person, "it is of the proposal as it was before it was changed", v, nil
	}
	if v.Says == Approved && person == s.Proposer {
		return person, "who proposes does not approve", v, nil
	}
	himself := false
	_, err = r.authors(ctx, path, data, func(by string) bool {
		himself = himself || by == address
		return himself
	})
	if err == nil && !himself {
		why = "nobody of that address committed it"
	}
	return person, why, v, err
}
