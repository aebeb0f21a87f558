package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"bagpipe/layout"
)

// Options say how the server is reached.
type Options struct {
	Token    string        // as bagpipe's token add prints it
	HTTP     *http.Client  // nil: http.DefaultClient
	InFlight int           // submissions under way at once; 0: 100
	Timeout  time.Duration // for the server's first answer; 0: a minute
}

// Client is a server of a workspace.
type Client struct {
	base, token string
	http        *http.Client
	flight      chan struct{} // submissions under way
	watch       *watch

	Meta
}

// Meta is what a server tells of itself.
type Meta struct {
	Version   string // of the server
	Workflows []Workflow
}

// Workflow is a definition in force.
type Workflow struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Steps       []string `json:"steps"`
}

// Error is what the server answered.
type Error struct {
	Status int    `json:"status"`
	Code   string `json:"code"` // not-found, refused, busy, invalid, forbidden, unauthorized, …
	Detail string `json:"detail"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (HTTP %d, %s)", e.Detail, e.Status, e.Code) }

// ErrLost says that an attempt is not this program's any more.
var ErrLost = errors.New("the attempt is not the current one: its lease ran out, a person cancelled it, or it has ended")

// Dial asks the server at an address, as http://127.0.0.1:8470/, which it is.
func Dial(ctx context.Context, address string, o Options) (*Client, error) {
	c := &Client{base: strings.TrimSuffix(address, "/") + "/api/v1/", token: o.Token, http: o.HTTP, flight: make(chan struct{}, cmp.Or(o.InFlight, 100))}
	c.watch = &watch{c: c, closed: make(chan struct{}), sent: map[layout.ItemID][]*Sent{}}
	if c.http == nil {
		c.http = http.DefaultClient
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, time.Minute))
	defer cancel()
	var spec struct{ Info struct{ Version string } }
	if err := c.call(ctx, http.MethodGet, "openapi.json", nil, &spec); err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			err = fmt.Errorf("no server listens there: %w", syscall.ECONNREFUSED)
		}
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	c.Version = spec.Info.Version
	if err := c.call(ctx, http.MethodGet, "workflows", nil, &c.Workflows); err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	return c, nil
}

// call sends JSON, and reads the answer into out, if that is not nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	header := http.Header{}
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
		header.Set("Content-Type", "application/json")
	}
	res, err := c.do(ctx, method, path, body, header)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(out)
}

// do sends a request. The caller closes the body of the answer.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	q.Header = header
	if c.token != "" {
		q.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(q)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	defer res.Body.Close()
	const most = 1 << 20
	e := &Error{}
	data, _ := io.ReadAll(io.LimitReader(res.Body, most)) // the status says enough
	if json.Unmarshal(data, e) != nil {
		e.Detail = strings.TrimSpace(string(data))
	}
	e.Status = res.StatusCode
	return nil, e
}

// is reports whether err is an answer with one of these statuses.
func is(err error, statuses ...int) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, s := range statuses {
		if e.Status == s {
			return true
		}
	}
	return false
}

// final reports whether asking again would be answered alike.
func final(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status < 500 && e.Status != http.StatusTooManyRequests
}

// mostBroken is how often an answer is asked for that the server cannot give, as something there is broken.
const mostBroken = 5

// lasting asks until the answer counts, or ctx ends: the engine may be started anew meanwhile.
func lasting(ctx context.Context, ask func() error) error {
	broken := 0
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := ask()
		if err == nil || final(err) {
			return err
		}
		if is(err, http.StatusInternalServerError) {
			if broken++; broken == mostBroken { // it will not mend by itself
				return err
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// lost words the answer to an attempt that is not the current one.
func lost(err error) error {
	if is(err, http.StatusConflict) {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// escaped is a path of which each name is escaped.
func escaped(path string) string {
	names := strings.Split(path, "/")
	for i, name := range names {
		names[i] = url.PathEscape(name)
	}
	return strings.Join(names, "/")
}
