package sync_test

import (
	"context"
	"testing"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/sync"
	"bagpipe/layout"
)

// Where an engine takes what is pushed, who pushed waits until it is joined or refused; where none does, nobody waits.
func TestWhoPushedWaitsForTheEngine(t *testing.T) {
	w := newWorld(t)
	s, ctx := sync.New(w.e.Ledger, w.e.Guard), context.Background()
	push := func(branch string, files map[string][]byte) {
		w.git(nil, "update-ref", "refs/heads/"+branch, w.commit(w.base, files).String())
	}
	push("for/good", map[string][]byte{"docs/note.txt": []byte("a note\n")})
	begin := time.Now()
	if s.AwaitTaken(ctx, []string{"for/good"}) || time.Since(begin) > 5*time.Second || !gitstore.HasOffer(w.e.Root(), "for/good") {
		t.Errorf("without an engine: waited for %v", time.Since(begin))
	}

	watching, stop := context.WithCancel(ctx)
	ended, told := make(chan struct{}), make(chan sync.Offered, 8)
	go func() {
		defer close(ended)
		s.KeepTaking(watching, func(looked []sync.Offered, err error) {
			if err != nil {
				t.Error(err)
			}
			for _, o := range looked {
				told <- o
			}
		})
	}()
	if first := <-told; first.Branch != "for/good" || first.Refused != "" {
		t.Errorf("the engine took %+v", first)
	}
	push("for/bad", map[string][]byte{layout.SettingsFile: []byte("schema: 1\nno-such-key: 1\n")})
	push("for/more", map[string][]byte{"docs/other.txt": []byte("another\n")})
	if !s.AwaitTaken(ctx, []string{"for/bad", "for/more"}) {
		t.Error("what the engine took or refused is waited for without end")
	}
	if there, err := sync.Offers(ctx, w.e.Root()); err != nil || len(there) != 1 || there[0].Branch != "for/bad" || there[0].Refused == "" {
		t.Errorf("%+v, %v", there, err)
	}
	stop()
	<-ended
	if !s.AwaitTaken(ctx, []string{"for/gone"}) {
		t.Error("what does not stand is waited for")
	}
}
