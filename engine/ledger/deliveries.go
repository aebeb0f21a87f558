package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"bagpipe/layout"
)

// UntrueDelivery says what a commit that changed an item's delivery.json from was to is did that neither an
// engine nor a person does; "": nothing. An engine commits that it is at a delivery before it begins, so what a
// target holds changes after that alone; what people decide, and what rules make of it, changes nothing there.
// What could not be used before may go.
func UntrueDelivery(was, is []byte) string {
	before, err := layout.DecodeDeliveries(was)
	if was != nil && err != nil {
		return ""
	}
	now, err := layout.DecodeDeliveries(is)
	if is != nil && err != nil {
		if was == nil {
			return ""
		}
		return "left a record that cannot be used: " + err.Error()
	}
	for _, to := range slices.Sorted(maps.Keys(before.Targets)) {
		w := before.Targets[to]
		switch gone := now.Targets[to] == nil && (w.Sent != nil || w.Engine != "" || w.Decision != nil); {
		case gone && is == nil:
			return "removed " + layout.DeliveryJSON
		case gone:
			return fmt.Sprintf("removed target %s from %s", to, layout.DeliveryJSON)
		}
	}
	for _, to := range slices.Sorted(maps.Keys(now.Targets)) {
		w := before.Targets[to]
		if w == nil {
			w = &layout.Delivery{}
		}
		if !follows(w, now.Targets[to]) {
			return fmt.Sprintf("changed in %s what %s holds, which no engine was sending or taking back", layout.DeliveryJSON, to)
		}
	}
	return ""
}

// Readable says why a file of an item that tells of its copies or its deliveries cannot be read; of one of a newer
// schema, and of any other file, it says nothing.
func Readable(rest string, data []byte) (err error) {
	switch rest {
	case layout.DeliveryJSON:
		_, err = layout.DecodeDeliveries(data)
	case layout.DepositsJSON:
		_, err = layout.DecodeDeposits(data)
	}
	var newer *layout.SchemaError
	if errors.As(err, &newer) {
		return nil
	}
	return err
}

// follows reports whether an engine, a person or the weighing brings a delivery from was to is in one commit.
func follows(was, is *layout.Delivery) bool {
	if was.Engine != "" {
		return true // it ended, or another engine took it up
	}
	holds := versionsAt(was.Sent)
	if is.State == layout.DeliverySending {
		holds[is.Version] = is.Digest
		return is.Engine != "" && is.Sent != nil && is.Sent.Maybe && maps.Equal(holds, versionsAt(is.Sent))
	}
	if is.State == layout.DeliveryDelivered && was.State != layout.DeliveryDelivered && was.State != layout.DeliveryUnconfirmed {
		return false
	}
	unsure := was.Sent != nil && was.Sent.Maybe
	return maps.Equal(holds, versionsAt(is.Sent)) && (!unsure || is.Sent.Maybe) && (was.Sent == nil || was.Sent.Place == is.Sent.Place &&
		was.Sent.Format == is.Sent.Format && slices.Equal(was.Sent.Left, is.Sent.Left))
}

// versionsAt are the versions that a target was sent and may hold, with their digests.
func versionsAt(s *layout.DeliverySent) map[int]string {
	all := map[int]string{}
	if s != nil {
		maps.Copy(all, s.Earlier)
		all[s.Version] = s.Digest
	}
	return all
}
