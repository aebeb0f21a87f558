package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
)

// some gives identifiers of items, the oldest first.
func (b *bench) some(n int) (ids []string, err error) {
	for next := "/api/v1/items?limit=1000"; next != "" && len(ids) < n; {
		data, behind, err := b.page(next)
		if err != nil {
			return nil, err
		}
		for _, id := range gjson.GetBytes(data, "#.item").Array() {
			ids = append(ids, id.String())
		}
		next = behind
	}
	return ids[:min(n, len(ids))], nil
}

// load commits transitions at a rate until stop is called: items are held and released. It gives how
// many a second there were.
func (b *bench) load(rate int) (stop func() float64, err error) {
	ids, err := b.some(2000)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done atomic.Int64
	var working sync.WaitGroup
	turns := make(chan int)
	began := time.Now()
	working.Go(func() {
		defer close(turns)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for due := int(time.Since(began).Seconds() * float64(rate)); n < due; n++ {
				select {
				case turns <- n:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	calls := map[string][][]byte{}
	for _, act := range []string{"hold", "release"} {
		for _, id := range ids {
			calls[act] = append(calls[act], b.call(id, `{"act":"`+act+`"}`))
		}
	}
	for range callers {
		working.Go(func() {
			c := caller{b: b}
			defer c.close()
			for n := range turns {
				if err := c.do(calls[[]string{"hold", "release"}[n/len(ids)%2]][n%len(ids)]); err == nil { // one that is refused is none
					done.Add(1)
				}
			}
		})
	}
	return func() float64 {
		cancel()
		took := time.Since(began)
		working.Wait()
		return float64(done.Load()) / took.Seconds()
	}, nil
}

// callers is how many act at once.
const callers = 64

// caller sends requests that were written before, on a connection of its own: with two cores a client that
// makes each request anew takes as much of them as the server.
type caller struct {
	b    *bench
	conn net.Conn
	in   *bufio.Reader
}

// call is the request for an act on an item.
func (b *bench) call(id, body string) []byte {
	return fmt.Appendf(nil, "POST /api/v1/items/%s/acts HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		id, strings.TrimPrefix(b.at, "http://"), b.token, len(body), body)
}

// do sends a request and reads the answer, which must be one of success.
func (c *caller) do(request []byte) (err error) {
	if c.conn == nil {
		if c.conn, err = net.Dial("tcp", strings.TrimPrefix(c.b.at, "http://")); err != nil {
			return err
		}
		c.in = bufio.NewReader(c.conn)
	}
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	status, length := "", -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		text := bytes.TrimRight(line, "\r\n")
		if status == "" {
			status = string(text)
		} else if value, ok := bytes.CutPrefix(text, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
		if len(text) == 0 {
			break
		}
	}
	if length < 0 {
		return fmt.Errorf("%s, without a length", status)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return err
	}
	if !strings.HasPrefix(status, "HTTP/1.1 2") {
		return fmt.Errorf("%s: %.300s", status, body)
	}
	return nil
}

func (c *caller) close() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing is on its way
	}
}
