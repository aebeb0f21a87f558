package alert

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"bagpipe/engine/ask"
	"bagpipe/engine/handover"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// handOver gives a digest to a command or an address, within alertTimeout.
func (al *Alerts) handOver(ctx context.Context, a *state.Alert, d Digest) error {
	for i := range d.Groups {
		g := &d.Groups[i]
		g.Examples = nil
		for _, x := range g.Members[:min(len(g.Members), alertExamples)] {
			g.Examples = append(g.Examples, ask.FailureExample{Item: x.Item, Collection: x.Collection, Label: x.Label, Message: x.Message})
		}
	}
	data, err := layout.EncodeJSON(d)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, alertTimeout, fmt.Errorf("it took more than %s", alertTimeout))
	defer cancel()
	if a.URL != "" {
		err = post(ctx, a.URL, data)
	} else {
		env := []string{"BAGPIPE_WORKFLOW=" + d.Workflow, "BAGPIPE_NEW=" + strconv.Itoa(d.New), "BAGPIPE_WAITING=" + strconv.Itoa(d.Waiting), "BAGPIPE_NEWS=" + d.news()}
		err = handover.Run(ctx, al.ledger.Root, a.Command, env, data)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// post sends the digest; any answer of 2xx will do. A redirection that would make a GET
// of it, without the digest, such as one to a page to log in at, is not followed.
func post(ctx context.Context, url string, data []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if next.Method != http.MethodPost || len(via) >= 10 {
				return http.ErrUseLastResponse
			}
			return nil
		}}
	return handover.Post(client, req)
}
