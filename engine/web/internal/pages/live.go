package pages

import (
	"fmt"
	"net/http"
	"time"
)

// live tells a browser, on a stream, whenever the history moved, at most twice a second, and
// says something at least every 20 seconds: whoever is gone is noticed.
func (p *Pages) live(w http.ResponseWriter, r *http.Request) (string, any, error) {
	const apart, silent, patience = 500 * time.Millisecond, 20 * time.Second, 30 * time.Second
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	text := "retry: 2000\n\n"
	for {
		_, moved := p.d.Pulse.At()
		_ = c.SetWriteDeadline(time.Now().Add(patience))
		if _, err := fmt.Fprint(w, text); err != nil {
			return "", nil, nil // who asked is gone
		}
		if err := c.Flush(); err != nil {
			return "", nil, nil
		}
		timer := time.NewTimer(silent)
		select {
		case <-r.Context().Done():
			timer.Stop()
			return "", nil, nil
		case <-timer.C:
			text = ": still here\n\n"
			continue
		case <-moved:
			timer.Stop()
			text = "event: moved\ndata: yes\n\n"
		}
		select {
		case <-r.Context().Done():
			return "", nil, nil
		case <-time.After(apart):
		}
	}
}
