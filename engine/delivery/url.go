package delivery

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/steps/target"
)

// urlOutlet is an address for each item: PUT brings it, GET tells what is there, DELETE takes
// it back. Bagpipe-Key and Bagpipe-Digest go with each call. A text, and a STAC item, go by
// themselves; files and bags as a tar.
type urlOutlet struct {
	address string
	token   string
	bytes   bool // what comes back must be what went
}

// urlTimeout is for one call, beside what its bytes take.
const urlTimeout = 2 * time.Minute

// slowest is how many bytes a second a target must take at least.
const slowest = 64 << 10

func (u urlOutlet) apart() bool {
	return strings.Contains(u.address, "{version}") || strings.Contains(u.address, "{key}")
}

// body is what is sent, its media type, and its digest.
func (u urlOutlet) body(p parcel) (open func(io.Writer) error, kind string, size int64) {
	if one := p.single(); one != nil {
		kind = one.typeOf()
		if p.Format == target.FormatSTAC {
			kind = "application/geo+json"
		}
		return one.copyTo, kind, one.size
	}
	for _, f := range p.files {
		size += f.size
	}
	return p.tar, "application/x-tar", size
}

// tar writes the parcel as a tar that is the same each time: no owners, no times.
func (p *parcel) tar(w io.Writer) error {
	out := tar.NewWriter(w)
	for i := range p.files {
		f := &p.files[i]
		h := &tar.Header{Name: string(p.Item) + "/" + f.name, Mode: 0o644, Size: f.size, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if err := f.copyTo(out); err != nil {
			return err
		}
	}
	return out.Close()
}

func (u urlOutlet) call(ctx context.Context, method string, p parcel, body io.Reader, kind string) (*http.Response, error) {
	address := strings.NewReplacer("{item}", string(p.Item), "{version}", strconv.Itoa(p.Version), "{key}", url.PathEscape(p.Key)).Replace(u.address)
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Idempotency-Key", p.Key)
	req.Header.Set("Bagpipe-Key", p.Key)
	req.Header.Set("Bagpipe-Digest", p.Digest)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if u.token != "" {
		req.Header.Set("Authorization", "Bearer "+u.token)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(req)
	if err != nil {
		return nil, &target.Down{Err: err}
	}
	return answer, nil
}

// refusal is an answer other than 2xx. One that may be otherwise soon is a *target.Down.
func refusal(method string, answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 500)) // only for people
	err := fmt.Errorf("%s: %s: %s", method, answer.Status, ledger.OneLine(string(text), 300))
	if answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusRequestTimeout {
		return &target.Down{Err: err}
	}
	return err
}

func (u urlOutlet) ask(ctx context.Context, p parcel) (receipt string, has bool, err error) {
	write, _, size := u.body(p)
	ctx, cancel := context.WithTimeout(ctx, urlTimeout+time.Duration(size/slowest)*time.Second)
	defer cancel()
	answer, err := u.call(ctx, http.MethodGet, p, nil, "")
	if err != nil {
		return "", false, err
	}
	defer answer.Body.Close() // what was read has been compared
	switch {
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone:
		return "", false, nil
	case answer.StatusCode/100 != 2:
		return "", false, refusal("GET", answer)
	case p.unknown:
		return "", true, nil
	case !u.bytes: // it must know the delivery by its digest
		return answer.Header.Get("ETag"), answer.Header.Get("Bagpipe-Digest") == p.Digest, nil
	}
	want, got := sha256.New(), sha256.New()
	if err := write(want); err != nil {
		return "", false, err
	}
	if _, err := io.Copy(got, answer.Body); err != nil {
		return "", false, &target.Down{Err: err}
	}
	sum := got.Sum(nil)
	return "sha256:" + hex.EncodeToString(sum), bytes.Equal(sum, want.Sum(nil)), nil
}

func (u urlOutlet) put(ctx context.Context, p parcel) (string, error) {
	write, kind, size := u.body(p)
	sending, cancel := context.WithTimeout(ctx, urlTimeout+time.Duration(size/slowest)*time.Second)
	defer cancel()
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := write(w)
		wrote <- err
		w.CloseWithError(err)
	}()
	answer, err := u.call(sending, http.MethodPut, p, r, kind)
	r.CloseWithError(io.ErrClosedPipe) // the writer ends, whoever broke off
	var other *changed
	if wroteErr := <-wrote; errors.As(wroteErr, &other) {
		if answer != nil {
			answer.Body.Close()
		}
		return "", other
	}
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return "", refusal("PUT", answer)
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 300)) // the receipt, if there is one
	if !u.bytes {
		return ledger.OneLine(strings.TrimSpace(answer.Status+" "+answer.Header.Get("ETag")+" "+string(text)), 300), nil
	}
	receipt, has, err := u.ask(ctx, p)
	if err == nil && !has {
		err = fmt.Errorf("the target answered %s, and does not give back what was sent", answer.Status)
	}
	return receipt, err
}

func (u urlOutlet) remove(ctx context.Context, p parcel) error {
	ctx, cancel := context.WithTimeout(ctx, urlTimeout)
	defer cancel()
	answer, err := u.call(ctx, http.MethodDelete, p, nil, "")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone {
		return nil
	}
	if answer.StatusCode/100 != 2 {
		return refusal("DELETE", answer)
	}
	if !u.bytes {
		return nil
	}
	left, err := u.call(ctx, http.MethodGet, p, nil, "")
	if err != nil {
		return err
	}
	defer left.Body.Close()
	switch {
	case left.StatusCode == http.StatusNotFound || left.StatusCode == http.StatusGone:
		return nil
	case left.StatusCode/100 == 2:
		return fmt.Errorf("the target answered %s, and still gives what was to be taken back", answer.Status)
	}
	return refusal("GET", left) // it may still be there
}
