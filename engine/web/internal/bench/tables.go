package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// floor is how long a static file of so many bytes takes, by net/http, on this machine.
func (b *bench) floor(data []byte) (time.Duration, error) {
	at := filepath.Join(b.dir, "static")
	if err := os.WriteFile(at, data, 0o666); err != nil {
		return 0, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(b.dir)), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // until it is closed below
	defer server.Close()
	other := *b
	other.at = "http://" + l.Addr().String()
	took, _, _, err := other.slowest("/static")
	return took, err
}

// pages measures lists, counts and the overview while transitions are committed.
func (b *bench) pages() error {
	data, _, err := b.ask("GET", fmt.Sprintf("/api/v1/items?limit=50&skip=%d", max(0, min(b.items/2, 500_000)-50)), "")
	if err != nil {
		return err
	}
	rows := gjson.GetBytes(data, "#.item").Array()
	if len(rows) == 0 {
		return errors.New("no items")
	}
	far, err := b.cursor(max(0, min(b.items/2, 500_000)-50))
	if err != nil {
		return err
	}
	stop, err := b.load(b.rate)
	if err != nil {
		return err
	}
	var firstTook time.Duration
	all := []page{
		{"overview", "/", 100 * time.Millisecond},
		{"first page with facets", "/items", 100 * time.Millisecond},
		{"two values chosen", "/items?facet=collection:maps&facet=status:in-progress", 100 * time.Millisecond},
		{"a step in a status, as the overview links", "/items?workflow=accession&step=convert&status=waiting", 100 * time.Millisecond},
		{"facets by call, two values chosen", "/api/v1/facets?facet=collection:maps&facet=status:in-progress", 100 * time.Millisecond},
		{"text", "/items?q=letter+00001", 300 * time.Millisecond},
		{"call: first 50", "/api/v1/items?limit=50", 0},
		{fmt.Sprintf("call: 50 behind the first %d", min(b.items/2, 500_000)), far, 0},
	}
	for _, p := range all {
		took, middle, data, err := b.slowest(p.path)
		if err != nil {
			return errors.Join(err, fmt.Errorf("%v a second", stop()))
		}
		floor, err := b.floor(data)
		if err != nil {
			return err
		}
		note := fmt.Sprintf("the median %v; static file of %d bytes %v", middle.Round(100*time.Microsecond), len(data), floor.Round(10*time.Microsecond))
		if p.most > 0 {
			note = judged(took, p.most) + "; " + note
		}
		if p.path == "/api/v1/items?limit=50" {
			firstTook = took
		}
		if p.path == far {
			note = fmt.Sprintf("%.2f of the first; at most 1.5; ", took.Seconds()/firstTook.Seconds()) + note
		}
		row(p.name, took.Round(100*time.Microsecond).String(), note)
	}
	row("transitions committed meanwhile", fmt.Sprintf("%.0f/s", stop()), "load "+machine())
	for _, p := range all { // while nothing moves: what it takes of a processor, however busy the machine is
		s := b.spend()
		const n = 20
		for range n {
			if _, _, err := b.ask("GET", p.path, ""); err != nil {
				return err
			}
		}
		each, _ := s.each(n)
		row(p.name+": processor time", each.Round(100*time.Microsecond).String(), "")
	}
	return nil
}

type page struct {
	name, path string
	most       time.Duration
}

// cursor is the path of the page behind so many items.
func (b *bench) cursor(skip int) (string, error) {
	_, path, err := b.page(fmt.Sprintf("/api/v1/items?limit=50&skip=%d", skip))
	if err == nil && path == "" {
		err = errors.New("the page has no next one")
	}
	return path, err
}

// page gives a page of a listing, and the path of the next; "": there is none.
func (b *bench) page(path string) (data []byte, next string, err error) {
	r, err := b.request(http.MethodGet, b.at+path, nil)
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := b.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	next, _, _ = strings.Cut(strings.TrimPrefix(resp.Header.Get("Link"), "<"), ">")
	return data, next, err
}

// facets compares with SQLite, which counts six of the columns: from a file with an index of each, as
// any two values may be chosen, and from one with indexes made for this very question.
func (b *bench) facets() error {
	const path = "/api/v1/facets?facet=collection:maps&facet=status:in-progress"
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		row("facets, two values chosen", "", "sqlite3 is not there to compare with")
		return nil
	}
	columns := []string{"collection", "lane", "batch", "workflow", "status", "step"}
	table, _, err := b.ask("GET", "/items.csv?columns="+strings.Join(columns, ","), "")
	if err != nil {
		return err
	}
	file := filepath.Join(b.dir, "items.csv")
	if err := os.WriteFile(file, table, 0o666); err != nil {
		return err
	}
	var each, both, asked strings.Builder
	fmt.Fprintf(&each, ".import --csv %q i\n", file)
	asked.WriteString("pragma mmap_size=4000000000;\n")
	for _, c := range columns {
		fmt.Fprintf(&each, "create index by_%[1]s on i(%[1]s);\n", c)
		fmt.Fprintf(&both, "create index both_%[1]s on i(collection, status, %[1]s);\n", c)
		fmt.Fprintf(&asked, "select %[1]s, count(*) from i where collection='maps' and status='in-progress' group by %[1]s;\n", c)
	}
	run := func(db, script string) (time.Duration, error) {
		cmd := b.command(program, filepath.Join(b.dir, db))
		cmd.Stdin = strings.NewReader(script)
		began := time.Now()
		err := cmd.Run()
		return time.Since(began), err
	}
	for db, made := range map[string]string{"each.db": each.String(), "both.db": each.String() + both.String()} {
		_ = os.Remove(filepath.Join(b.dir, db)) // of an earlier call
		if _, err := run(db, made+"analyze;\n"); err != nil {
			return err
		}
	}
	took := map[string][]time.Duration{}
	for range b.tries { // side by side, as other work may stand beside
		_, one, err := b.ask("GET", path, "")
		if err != nil {
			return err
		}
		took["ours"] = append(took["ours"], one)
		empty, err := run("each.db", "select 1;\n")
		if err != nil {
			return err
		}
		for _, db := range []string{"each.db", "both.db"} {
			one, err := run(db, asked.String())
			if err != nil {
				return err
			}
			took[db] = append(took[db], max(0, one-empty))
		}
	}
	middle := func(of string) time.Duration {
		slices.Sort(took[of])
		return took[of][len(took[of])/2]
	}
	ours := middle("ours")
	ratio := func(db string) string {
		return fmt.Sprintf("%v, %.1f ×", middle(db).Round(100*time.Microsecond), middle(db).Seconds()/ours.Seconds())
	}
	row("facets, two values chosen, all columns, the median", ours.Round(100*time.Microsecond).String(), "sqlite3, six columns, an index of each: "+ratio("each.db")+"; at least 10; indexes made for these two: "+ratio("both.db"))
	return nil
}

// item measures an item with many files and attempts.
func (b *bench) item() error {
	if b.files == 0 {
		return nil
	}
	for n := range 200 {
		for _, act := range []string{"complete", "reset"} {
			if _, _, err := b.ask("POST", "/api/v1/items/large/acts", `{"act":"`+act+`","step":"look","message":"`+strconv.Itoa(n)+`"}`); err != nil {
				return err
			}
		}
	}
	for _, p := range []struct {
		name, path string
		most       time.Duration
	}{{fmt.Sprintf("item of %d files, 200 attempts", b.files), "/items/large", 150 * time.Millisecond}, {"its history", "/items/large/log", 1500 * time.Millisecond}} {
		took, _, _, err := b.slowest(p.path)
		if err != nil {
			return err
		}
		row(p.name, took.Round(100*time.Microsecond).String(), judged(took, p.most))
	}
	return nil
}

// watch reads the stream of a browser until ctx ends.
func (b *bench) watch(ctx context.Context, part string, came func()) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.at+"/live?part="+url.QueryEscape(part), nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := (&http.Client{Transport: b.client.Transport}).Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	in := bufio.NewReaderSize(resp.Body, 64<<10)
	for begins := true; ; {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		if err != nil {
			return nil // the time is over
		}
		if begins && bytes.HasPrefix(line, []byte("data: ")) {
			came()
		}
		begins = bytes.HasSuffix(line, []byte("\n"))
	}
}

// screen measures from the answer to an act to the part of the page that shows it.
func (b *bench) screen() error {
	ids, err := b.some(100)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	came := make(chan time.Time, 1000)
	watching := make(chan error, 1)
	go func() { watching <- b.watch(ctx, "", func() { came <- time.Now() }) }()
	<-came
	worst := time.Duration(0)
	for n := range 20 {
		time.Sleep(700 * time.Millisecond)
		for len(came) > 0 {
			<-came
		}
		at := "/api/v1/items/" + ids[n] + "/acts"
		if _, _, err := b.ask("POST", at, `{"act":"hold"}`); err != nil { // it is held already, as the load left it
			if _, _, err := b.ask("POST", at, `{"act":"release"}`); err != nil {
				return err
			}
		}
		committed := time.Now()
		select {
		case at := <-came:
			worst = max(worst, at.Sub(committed))
		case <-time.After(5 * time.Second):
			return errors.New("the page was not told")
		}
	}
	end()
	row("from commit to screen, the slowest of 20", worst.Round(time.Millisecond).String(), judged(worst, time.Second))
	return <-watching
}

// bytes measures a large file sent and brought.
func (b *bench) bytes() error {
	if b.files == 0 {
		return nil
	}
	size := int64(b.megabytes) << 20
	get := func(at string) (time.Duration, error) {
		best := time.Hour
		for range 3 {
			r, err := b.request(http.MethodGet, at, nil)
			if err != nil {
				return 0, err
			}
			r.Header.Set("Authorization", "Bearer "+b.token)
			began := time.Now()
			resp, err := b.client.Do(r)
			if err != nil {
				return 0, err
			}
			n, err := io.Copy(io.Discard, resp.Body)
			if err = errors.Join(err, resp.Body.Close()); err != nil {
				return 0, err
			}
			if n != size {
				return 0, fmt.Errorf("%s: %d bytes of %d: %s", at, n, size, resp.Status)
			}
			best = min(best, time.Since(began))
		}
		return best, nil
	}
	down, err := get(b.at + "/api/v1/items/big/files/big.bin")
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(b.dir)), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // until it is closed below
	plain, err := get("http://" + l.Addr().String() + "/big.bin")
	if err = errors.Join(err, server.Close()); err != nil {
		return err
	}
	row("download", fmt.Sprintf("%.0f MB/s", float64(size)/1e6/down.Seconds()), fmt.Sprintf("%.2f of http.FileServer; at least 0.9", plain.Seconds()/down.Seconds()))
	up, floor := time.Hour, time.Hour
	for range 5 { // in turn, and the best of each: the disk is not always free
		sent, err := b.upload(size)
		if err != nil {
			return err
		}
		copied, err := b.copied()
		if err != nil {
			return err
		}
		up, floor = min(up, sent), min(floor, copied)
	}
	row("upload", fmt.Sprintf("%.0f MB/s", float64(size)/1e6/up.Seconds()), fmt.Sprintf("%.2f of a plain copy that is on the disk; at least 0.7", floor.Seconds()/up.Seconds()))
	return nil
}

// copied is how long a copy of the file takes that is synced.
func (b *bench) copied() (time.Duration, error) {
	began, to := time.Now(), filepath.Join(b.root, "inbox/.copied")
	if err := b.command("cp", filepath.Join(b.dir, "big.bin"), to).Run(); err != nil {
		return 0, err
	}
	err := b.command("sync", to).Run()
	took := time.Since(began)
	return took, errors.Join(err, os.Remove(to))
}

// upload sends the file by tus, in one piece.
func (b *bench) upload(size int64) (time.Duration, error) {
	data, err := os.ReadFile(filepath.Join(b.dir, "big.bin"))
	if err != nil {
		return 0, err
	}
	send := func(method, at string, body []byte, headers ...string) (*http.Response, error) {
		r, err := b.request(method, b.at+at, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+b.token)
		r.Header.Set("Tus-Resumable", "1.0.0")
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := b.client.Do(r)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode >= 300 {
			err = fmt.Errorf("%s %s: %s %s", method, at, resp.Status, text)
		}
		return resp, errors.Join(err, resp.Body.Close())
	}
	began := time.Now()
	resp, err := send(http.MethodPost, "/api/v1/uploads", nil, "Upload-Length", strconv.FormatInt(size, 10), "Upload-Metadata", "collection ZGVmYXVsdA==,filename "+"YmlnLmJpbg==")
	if err != nil {
		return 0, err
	}
	_, err = send(http.MethodPatch, resp.Header.Get("Location"), data, "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")
	took := time.Since(began)
	return took, errors.Join(err, os.RemoveAll(filepath.Join(b.root, "inbox/default/big.bin")))
}
