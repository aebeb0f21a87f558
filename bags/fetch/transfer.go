package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"bagpipe/bags"
	"bagpipe/layout/disk"
)

// This file gets the bytes of one file that fetch.txt lists.

const transferBuffer = 256 << 10

// transfer appends to out what comes, from had on where it can, and gives the
// whole's size.
func (f *fetcher) transfer(ctx context.Context, l bags.Hole, out *os.File, had int64) (n int64, again bool, err error) {
	u, err := url.Parse(l.Url)
	if err != nil {
		return 0, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var body io.ReadCloser
	switch u.Scheme {
	case "http", "https":
		body, had, again, err = f.get(ctx, u, had)
	case "file":
		body, err = f.o.Allowed.file(u)
		had = 0
	default:
		err = fmt.Errorf("the scheme %q is not fetched; http, https and file are", u.Scheme)
	}
	if err != nil {
		return 0, again, err
	}
	defer body.Close()
	if _, err := out.Seek(had, io.SeekStart); err != nil {
		return 0, false, machineError{err}
	}
	f.count(had)
	n, again, err = f.copy(ctx, cancel, out, body, l, had)
	if err != nil {
		f.count(-n)
	}
	return n, again, err
}

func (f *fetcher) copy(ctx context.Context, cancel func(), out *os.File, body io.Reader, l bags.Hole, n int64) (int64, bool, error) {
	alarm := time.AfterFunc(f.stall, cancel)
	defer alarm.Stop()
	buf := make([]byte, transferBuffer)
	for {
		got, rerr := body.Read(buf)
		alarm.Reset(f.stall)
		if got > 0 {
			if n += int64(got); l.Length >= 0 && n > l.Length {
				return n, false, fmt.Errorf("more than the %d bytes come that fetch.txt says", l.Length)
			}
			if rule, detail := f.o.Limits.OverFile(n); rule != "" {
				return n, false, fmt.Errorf("%s: %s", rule, detail)
			}
			if err := f.roomFor(int64(got)); err != nil {
				return n, false, machineError{err}
			}
			if _, err := out.Write(buf[:got]); err != nil {
				return n, false, machineError{err}
			}
			f.count(int64(got))
		}
		switch {
		case errors.Is(rerr, io.EOF):
			return n, false, nil
		case rerr != nil && ctx.Err() != nil:
			return n, true, fmt.Errorf("nothing came for %s", f.stall)
		case rerr != nil:
			return n, true, rerr
		}
	}
}

// roomFor is room for n further bytes, looked at every so many.
func (f *fetcher) roomFor(n int64) error {
	f.mu.Lock()
	f.asked += n
	look := f.asked >= roomEvery
	if look {
		f.asked = 0
	}
	f.mu.Unlock()
	if !look {
		return nil
	}
	return f.room(n)
}

// room refuses to write need bytes where less than what is to stay free would be left.
func (f *fetcher) room(need int64) error {
	free, err := disk.Free(f.bag.Dir)
	if need = max(need, 0); err == nil && int64(min(free, math.MaxInt64))-f.o.Free < need {
		err = fmt.Errorf("no room: %d bytes are free, of which %d stay free, and %d or more are to come", free, f.o.Free, need)
	}
	return err
}

// get asks for what follows the first had bytes. A server that sends all is taken
// at its word.
func (f *fetcher) get(ctx context.Context, u *url.URL, had int64) (_ io.ReadCloser, from int64, again bool, err error) {
	if err := f.o.Allowed.host(u); err != nil {
		return nil, 0, false, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, 0, false, err
	}
	r.Header.Set("Accept-Encoding", "identity")
	if had > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", had))
	}
	answer, err := f.client.Do(r)
	if err != nil {
		var refused *NotAllowedError
		return nil, 0, !errors.As(err, &refused), err
	}
	switch code := answer.StatusCode; {
	case code == http.StatusOK:
		return answer.Body, 0, false, nil
	case code == http.StatusPartialContent && strings.HasPrefix(answer.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", had)):
		return answer.Body, had, false, nil
	case code == http.StatusRequestedRangeNotSatisfiable && had > 0:
		return f.whole(ctx, u, answer)
	default:
		again := code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
		return nil, 0, again, errors.Join(fmt.Errorf("the server answers %s", answer.Status), answer.Body.Close())
	}
}

// whole asks again, for everything, where the part does not fit the file.
func (f *fetcher) whole(ctx context.Context, u *url.URL, before *http.Response) (io.ReadCloser, int64, bool, error) {
	if err := before.Body.Close(); err != nil {
		return nil, 0, true, err
	}
	return f.get(ctx, u, 0)
}
