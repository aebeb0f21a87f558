package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"bagpipe/engine/control"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Metrics are those of one run of one engine.
type Metrics struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	index    *index.Keeper
	version  string

	mu       sync.Mutex // guards the rest
	ended    map[endedKey]took
	ages     ages
	running  bool // a run looks at the inbox
	admitted int
	rejected int
	scanned  time.Time // the end of the last scan of the inbox
	taking   bool      // drops are being taken in since, which may take long
	waiting  int       // drops that it left
}

type endedKey struct {
	step   state.Ref
	status state.Status
}

// took is how often a step came to an end, and how long that took altogether.
type took struct {
	n           int
	waited, ran time.Duration
}

// New gives the metrics of a run that begins.
func New(l *ledger.Ledger, s *settings.Source, i *index.Keeper, version string) *Metrics {
	return &Metrics{ledger: l, settings: s, index: i, version: version, ended: map[endedKey]took{}, scanned: l.Clock()}
}

// Begin notes that a run begins, which looks at the inbox; End, that it has ended.
func (m *Metrics) Begin() { m.setRunning(true) }

// End notes that no run looks at the inbox any more.
func (m *Metrics) End() { m.setRunning(false) }

func (m *Metrics) setRunning(running bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running, m.scanned = running, m.ledger.Clock()
}

// Ended counts a step that this run ended.
func (m *Metrics) Ended(e index.Ended) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := endedKey{control.RefOf(e.Workflow, e.Step), e.Status}
	t := m.ended[k]
	m.ended[k] = took{t.n + 1, t.waited + e.Waited, t.ran + e.Ran}
}

// Took counts a drop that was taken in, or rejected.
func (m *Metrics) Took(rejected bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rejected {
		m.rejected++
	} else {
		m.admitted++
	}
}

// Scanned notes a scan of the inbox, and how many drops it left there; taking says that
// others are taken in until Taken.
func (m *Metrics) Scanned(waiting int, taking bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scanned, m.waiting, m.taking = m.ledger.Clock(), waiting, taking
}

// Taken ends what Scanned began.
func (m *Metrics) Taken() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scanned, m.taking = m.ledger.Clock(), false
}

// staleScan is for how long a service need not have looked into its inbox.
const staleScan = 5 * time.Minute

// Alive says why the run seems to hang; nil: it does not.
func (m *Metrics) Alive() error {
	m.mu.Lock()
	since, taking := m.ledger.Clock().Sub(m.scanned), m.taking || !m.running
	m.mu.Unlock()
	if most := staleScan + 2*m.settings.Current().Settings.Rescan(); since > most && !taking {
		return fmt.Errorf("the inbox was not looked at for %s", since.Round(time.Second))
	}
	// The store answers from what it has read; that the folder is gone it would see at a commit.
	if _, err := os.Stat(m.ledger.Path(layout.RepositoryDir + "/HEAD")); err != nil {
		return fmt.Errorf("the history cannot be read: %w", err)
	}
	if _, err := m.ledger.Store.Tip(); err != nil {
		return fmt.Errorf("the history cannot be read: %w", err)
	}
	return nil
}

// Health says why the run is not well; nil: it is.
func (m *Metrics) Health() error {
	if err := m.Alive(); err != nil {
		return err
	}
	free, err := disk.Free(m.ledger.Root)
	if err != nil {
		return err
	}
	if least := m.settings.Current().Settings.Free(); free < least {
		return fmt.Errorf("%s free, less than limits: free: %s", layout.FormatSize(free), layout.FormatSize(least))
	}
	return nil
}

// Handler answers GET /metrics and GET /healthz.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(m.text()) // who asked is gone
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := m.Health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	return mux
}

// Serve answers on a listener until ctx ends.
func (m *Metrics) Serve(ctx context.Context, on net.Listener) error {
	server := &http.Server{Handler: m.Handler(), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 1 << 14}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(on); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
