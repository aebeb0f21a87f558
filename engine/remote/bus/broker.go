package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/nats-io/nats.go"
)

// BrokerOptions say what a broker is.
type BrokerOptions struct {
	ServerOptions
	Key wire.BrokerKey
	Log *slog.Logger
}

// Broker is a server of a cluster, without an engine. It knows the workers' keys from the engine,
// and keeps them, so that workers come in also while no engine runs.
type Broker struct {
	server *Server
	conn   *nats.Conn
	file   string
	log    *slog.Logger
	name   string

	mu   sync.Mutex // guards keys
	keys map[string]layout.Name
}

// ServeBroker starts a broker.
func ServeBroker(o BrokerOptions) (_ *Broker, err error) {
	b := &Broker{file: filepath.Join(o.Store, "keys.json"), log: o.Log, name: o.Cluster.Name, keys: map[string]layout.Name{}}
	if data, err := os.ReadFile(b.file); err == nil {
		var m wire.Keys
		if err := wire.Decode(data, &m); err == nil {
			b.keys = m.Keys
		}
	}
	if o.TLS, o.Cluster.TLS, err = o.Key.TLS(); err != nil {
		return nil, fmt.Errorf("read the broker's certificate: %w", err)
	}
	o.Cluster.Secret, o.Cluster.Engine = o.Key.Cluster, o.Key.Engine
	o.ServerOptions.Key, o.ServerOptions.Log = b.known, o.Log
	if b.server, err = Serve(o.ServerOptions); err != nil {
		return nil, err
	}
	b.conn, err = nats.Connect("", append(lasting(), nats.InProcessServer(inProcess{b.server}), nats.Nkey(b.server.operator, signer(b.server.seed)))...)
	if err != nil {
		b.server.Close()
		return nil, err
	}
	_, err = b.conn.Subscribe(wire.KeysSubject, func(m *nats.Msg) { b.learn(m.Data) })
	if err == nil {
		_, err = b.conn.Subscribe(wire.PingSubject, func(m *nats.Msg) {
			if data, err := wire.Encode(wire.BrokerTold{Head: wire.Now(), Name: b.name, Sync: "always"}); err == nil {
				_ = m.Respond(data) // who asked asks again
			}
		})
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Addr is where the broker listens for engine and workers.
func (b *Broker) Addr() string { return b.server.Addr() }

// Close ends the broker.
func (b *Broker) Close() {
	b.conn.Close()
	b.server.Close()
}

func (b *Broker) known(public string) (layout.Name, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name, ok := b.keys[public]
	return name, ok
}

// learn takes the engine's list of keys in, and drops the connections of those that are gone.
func (b *Broker) learn(data []byte) {
	var m wire.Keys
	if err := wire.Decode(data, &m); err != nil {
		b.log.Warn("the list of keys was refused", "err", err)
		return
	}
	b.mu.Lock()
	before := b.keys
	same := len(before) == len(m.Keys)
	for public, name := range m.Keys {
		same = same && before[public] == name
	}
	b.keys = m.Keys
	b.mu.Unlock()
	if same {
		return
	}
	if err := disk.WriteFile(b.file, data, 0o600); err != nil {
		b.log.Error("keep the list of keys", "err", err)
	}
	for public, name := range before {
		if m.Keys[public] != name {
			b.server.Drop(name)
		}
	}
}

// TellKeys tells brokers which keys come in.
func (e *Engine) TellKeys(keys map[string]layout.Name) {
	if data, err := json.Marshal(wire.Keys{Head: wire.Now(), Keys: keys}); err == nil {
		_ = e.conn.Publish(wire.KeysSubject, data) // it is told again
	}
}

// Synced reports how many brokers say that they sync always; where none answers, what a server that lets
// its figures be asked for says. warning is "" where all is well.
func (e *Engine) Synced(ctx context.Context) (brokers int, warning string) {
	names := map[string]bool{}
	e.gather(ctx, wire.PingSubject, nil, func(data []byte) {
		var told wire.BrokerTold
		if wire.Decode(data, &told) == nil {
			names[told.Name] = true
		}
	})
	if len(names) > 0 {
		return len(names), ""
	}
	asked, lazy := 0, 0
	e.gather(ctx, "$SYS.REQ.SERVER.PING.JSZ", []byte(`{"config":true}`), func(data []byte) {
		var told struct {
			Data struct {
				Config struct {
					Always bool `json:"sync_always"`
				} `json:"config"`
			} `json:"data"`
		}
		if json.Unmarshal(data, &told) == nil {
			if asked++; !told.Data.Config.Always {
				lazy++
			}
		}
	})
	switch {
	case asked == 0:
		return 0, "the NATS server does not say whether it syncs always (sync_interval: always); where it does not, a loss of power costs what is on offer, which is offered again"
	case lazy > 0:
		return 0, "the NATS server does not sync always (sync_interval: always): a loss of power costs what is on offer, which is offered again"
	}
	return 0, ""
}

// gather asks all who answer within a short time.
func (e *Engine) gather(ctx context.Context, subject string, data []byte, told func([]byte)) {
	inbox := e.conn.NewInbox()
	sub, err := e.conn.SubscribeSync(inbox)
	if err != nil {
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	if e.conn.PublishRequest(subject, inbox, data) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, gatherTime)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return
		}
		if m.Header.Get("Status") == "" { // else nobody is there
			told(m.Data)
		}
	}
}
