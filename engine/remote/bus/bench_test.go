package bus

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/nats-io/nats.go/jetstream"
)

// BenchmarkBareJetStream publishes a message, pulls it and has its acknowledgement acknowledged, with 16 who pull
// side by side and a server that syncs always, as that of offers does: the floor beneath a claim.
func BenchmarkBareJetStream(b *testing.B) {
	s, err := Serve(ServerOptions{Listen: "127.0.0.1:0", Store: b.TempDir(), Key: func(string) (layout.Name, bool) { return "", false }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	e, err := s.Engine()
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	stream, err := e.js.CreateStream(ctx, jetstream.StreamConfig{Name: "BARE", Subjects: []string{"bare"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage})
	if err != nil {
		b.Fatal(err)
	}
	queue, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: "bare", AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: -1, MemoryStorage: true})
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 200)
	var taken atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range 16 {
		wg.Go(func() {
			for taken.Load() < int64(b.N) && ctx.Err() == nil {
				got, err := queue.Fetch(1, jetstream.FetchMaxWait(200*time.Millisecond))
				if err != nil {
					continue
				}
				for m := range got.Messages() {
					if m.DoubleAck(ctx) == nil {
						taken.Add(1)
					}
				}
			}
		})
	}
	for range b.N {
		if _, err := e.js.Publish(ctx, "bare", data); err != nil {
			b.Fatal(err)
		}
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
