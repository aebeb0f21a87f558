package ask

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// InboxRow is what lies in the inbox, and why.
type InboxRow struct {
	Collection layout.Name `json:"collection,omitempty"`
	Batch      layout.Name `json:"batch,omitempty"` // of a drop in a batch's folder
	Name       string      `json:"name"`            // percent-encoded
	State      string      `json:"state"`           // settled, waiting, barred (a person must do something), taken (its original stays), bad or rejected
	Reason     string      `json:"reason"`
	Remedies   []Remedy    `json:"-"`
	Late       bool        `json:"late,omitempty"` // on its way for longer than inbox: growing:
	Files      int         `json:"files,omitempty"`
	Bytes      int64       `json:"bytes,omitempty"`
	Changed    time.Time   `json:"changed,omitzero"`
	Until      time.Time   `json:"until,omitzero"` // when it can settle at the earliest
}

// String words a row for people.
func (r InboxRow) String() string {
	parts := []string{string(r.Collection), string(r.Batch), r.Name}
	if r.Collection == "" {
		parts = parts[2:]
	} else if r.Batch == "" || string(r.Batch) == r.Name {
		parts = []string{parts[0], parts[2]}
	}
	return strings.Join(parts, "/") + ": " + r.Reason
}

func rowOf(d inbox.Drop, state, reason string) InboxRow {
	return InboxRow{Collection: d.Collection, Batch: d.Batch, Name: layout.EncodePath(d.Name), State: state, Reason: reason,
		Files: d.Files, Bytes: d.Bytes, Changed: d.Since.UTC()}
}

func WaitingRow(w inbox.Waiting) InboxRow {
	row := rowOf(w.Drop, "waiting", w.Reason)
	row.Remedies, row.Late, row.Until = w.Remedies, w.Late, w.Until.UTC()
	switch {
	case w.Barred:
		row.State = "barred"
	case w.Taken:
		row.State = "taken"
	}
	return row
}

// Rejections lists the drops that were set aside.
func (dr *Drops) Rejections() ([]inbox.Rejection, error) {
	box, err := dr.intake.Box(false)
	if err != nil {
		return nil, err
	}
	return box.Rejections()
}

// Called is the drops of a name, NAME or COLLECTION/NAME, percent-encoded or not, that are no items: what lies in the
// inbox, and what was set aside, of state rejected with where it is kept.
func (dr *Drops) Called(ctx context.Context, name string) ([]InboxRow, error) {
	var s Status
	if err := dr.statusOfInbox(ctx, &s); err != nil {
		return nil, err
	}
	rows := s.Inbox
	for _, r := range s.Rejected {
		collection, drop, _ := strings.Cut(r.Drop, "/")
		rows = append(rows, InboxRow{Collection: layout.Name(collection), Batch: r.Batch, Name: drop, State: "rejected",
			Reason: fmt.Sprintf("was rejected: %s (kept as %s)", cmp.Or(r.Reason, "why is not known"), r.Where), Changed: r.Time})
	}
	names := []string{name, layout.EncodePath(name)} // as it is told, or as it lies there
	return slices.DeleteFunc(rows, func(r InboxRow) bool {
		return !slices.Contains(names, r.Name) && !slices.Contains(names, string(r.Collection)+"/"+r.Name)
	}), nil
}

// statusOfInbox looks at the inbox as a run would, and takes nothing.
func (dr *Drops) statusOfInbox(ctx context.Context, s *Status) error {
	box, err := dr.intake.Box(false)
	if err != nil {
		return err
	}
	if s.Rejected, err = box.Rejections(); err != nil {
		return err
	}
	found, err := box.Scan(ctx)
	if err != nil {
		return fmt.Errorf("scan the inbox: %w", err)
	}
	s.Pauses = append(s.Pauses, found.Paused...)
	bound, err := box.Bound()
	if err != nil {
		return fmt.Errorf("look into %s: %w", layout.IntakeDir, err)
	}
	for _, t := range bound {
		s.Inbox = append(s.Inbox, InboxRow{Collection: t.Collection, Name: layout.EncodePath(t.Name), State: "waiting",
			Reason: dr.intake.WhyBound(t), Files: t.Files, Bytes: t.Bytes, Changed: t.At.UTC()})
	}
	full := dr.intake.Full()
	if full != "" {
		s.Pauses = append(s.Pauses, full)
	}
	free, waiting := dr.intake.KeepBack(found.Settled, found.Waiting)
	settled, crowded := dr.intake.Fitting(ctx, free)
	for _, d := range settled {
		reason := "settled; the next run takes it in"
		switch {
		case s.Paused != "":
			reason = "settled; waits for free space"
		case full != "":
			reason = "settled; waits until items that are under way are done (limits: inFlight:)"
		}
		if d.Stays != "" {
			reason += ", as a copy: " + d.Stays
		}
		s.Inbox = append(s.Inbox, rowOf(d, "settled", reason))
	}
	for _, w := range append(crowded, waiting...) {
		s.Inbox = append(s.Inbox, WaitingRow(w))
	}
	for _, b := range found.Bad {
		s.Inbox = append(s.Inbox, rowOf(b.Drop, "bad", b.Reason+"; the next run sets it aside"))
	}
	return nil
}
