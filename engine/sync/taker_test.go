package sync_test

import (
	"bytes"
	"context"
	"crypto/rand"
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
	if sync.AwaitTaken(ctx, w.e.Root(), []string{"for/good"}) || time.Since(begin) > 5*time.Second || !gitstore.HasOffer(w.e.Root(), "for/good") {
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
	if !sync.AwaitTaken(ctx, w.e.Root(), []string{"for/bad", "for/more"}) {
		t.Error("what the engine took or refused is waited for without end")
	}
	if there, err := sync.Offers(ctx, w.e.Root()); err != nil || len(there) != 1 || there[0].Branch != "for/bad" || there[0].Refused == "" {
		t.Errorf("%+v, %v", there, err)
	}
	stop()
	<-ended
	if !sync.AwaitTaken(ctx, w.e.Root(), []string{"for/gone"}) {
		t.Error("what does not stand is waited for")
	}
}

// A record larger than any is stays out, though it compresses to nothing.
func TestTooLargeARecordStaysOut(t *testing.T) {
	w := newWorld(t)
	s, ctx := sync.New(w.e.Ledger, w.e.Guard), context.Background()
	id, err := layout.NewItemID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	name := layout.ItemDir(id) + "/" + layout.ExecutionJSON
	w.git(nil, "update-ref", "refs/heads/for/large", w.commit(w.base, map[string][]byte{name: bytes.Repeat([]byte(" "), 33<<20)}).String())
	looked, err := s.TakeOffers(ctx, false)
	if err != nil || len(looked) != 1 || looked[0].Refused == "" {
		t.Errorf("%+v, %v", looked, err)
	}
	large, err := gitstore.LargeRecordBetween(ctx, w.e.Ledger.Store, w.base, w.commit(w.base, map[string][]byte{name: bytes.Repeat([]byte(" "), 33<<20)}))
	if err != nil || large != name {
		t.Errorf("%q is large, %v", large, err)
	}
}
