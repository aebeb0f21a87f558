package worker

import (
	"context"
	"errors"
	"testing"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// A robot with instances runs no more often side by side, and takes no slot while it waits: others have it.
func TestInstancesBoundARobot(t *testing.T) {
	w := &Worker{slots: make(chan struct{}, 2), each: map[string]chan struct{}{"ocr": make(chan struct{}, 1)}}
	seat := func(robot layout.Name, free bool) (leave func()) {
		t.Helper()
		ctx := t.Context()
		if !free {
			ended, end := context.WithCancelCause(ctx)
			end(errLost)
			ctx = ended
		}
		leave, err := w.seat(ctx, robot)
		if free && err != nil || !free && !errors.Is(err, errLost) {
			t.Fatalf("%s: %v", robot, err)
		}
		return leave
	}
	first := seat("ocr", true)
	seat("ocr", false)
	other := seat("noop", true)
	seat("noop", false)
	first()
	second := seat("ocr", true)
	second()
	other()
	if len(w.slots) != 0 || len(w.each["ocr"]) != 0 {
		t.Errorf("%d slots and %d instances are taken", len(w.slots), len(w.each["ocr"]))
	}
}

// granting is a link on which a claim is granted.
type granting struct {
	said
	grant wire.Grant
}

func (g granting) Ask(context.Context, string, []byte) ([]byte, error) { return wire.Encode(g.grant) }

// once is an offer that counts its acknowledgements.
type once struct {
	Pulled
	acked int
}

func (o *once) Done() { o.acked++ }

// An offer that is granted is acknowledged, unless the engine takes it out of the stream: one of a release before does not.
func TestOffersThatTheEngineClears(t *testing.T) {
	for want, grant := range []wire.Grant{{Head: wire.Now(), Cleared: true}, {Head: wire.Now()}} {
		w, p := &Worker{o: Options{Link: granting{grant: grant}}}, &once{}
		if _, ok := w.claim(t.Context(), wire.Offer{ID: "1"}, p); !ok || p.acked != want {
			t.Errorf("%+v: granted %v, acknowledged %d times, want %d", grant, ok, p.acked, want)
		}
	}
}
