package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/ask"
)

// ask puts the questions of a running engine.
func (b *bench) ask(e *engine.Engine) error {
	start := time.Now()
	count, err := e.Ask.CountQueue(ask.QueueAsk{Which: "accession/convert"})
	if err != nil {
		return err
	}
	b.row("queue of one step, counted", time.Since(start), mostQuestion, fmt.Sprintf("%d ready", count.Ready))
	start = time.Now()
	rows, err := e.Ask.Queue(ask.QueueAsk{Which: "accession/convert", Limit: 100})
	if err != nil {
		return err
	}
	b.row("queue of one step, the first 100", time.Since(start), mostQuestion, fmt.Sprintf("%d rows", len(rows)))
	start = time.Now()
	if rows, err = e.Ask.Queue(ask.QueueAsk{Which: "accession/convert"}); err != nil {
		return err
	}
	b.row("queue of one step, all of it", time.Since(start), 0, fmt.Sprintf("%d rows", len(rows)))
	start = time.Now()
	stats := e.Ask.Stats()
	b.row("stats", time.Since(start), 0, fmt.Sprintf("%d steps", len(stats.Steps)))
	start = time.Now()
	s, err := e.Ask.Status(context.Background(), ask.Filter{})
	if err != nil {
		return err
	}
	b.row("status", time.Since(start), 0, fmt.Sprintf("%d items", s.Items))
	return nil
}

// commands runs the program itself, from its start to its end.
func (b *bench) commands() error {
	program := filepath.Join(b.root, ".bagpipe", "bench-program")
	defer os.Remove(program)
	if out, err := exec.Command("go", "build", "-o", program, "bagpipe/cmd/bagpipe").CombinedOutput(); err != nil {
		fmt.Printf("  the program could not be built; its commands are left out: %v: %s\n", err, out)
		return nil
	}
	for _, args := range [][]string{{"--count"}, {"--limit", "100"}, {}, {"--json"}} {
		cmd := exec.Command(program, append([]string{"queue", "accession/convert"}, args...)...)
		cmd.Dir = b.root
		start := time.Now()
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("bagpipe queue %v: %w", args, err)
		}
		b.row(strings.TrimSpace("bagpipe queue accession/convert "+strings.Join(args, " ")), time.Since(start), mostCommand, fmt.Sprintf("%d bytes", len(out)))
	}
	return nil
}

// sqliteScript makes a file of the same records with the index that the question
// needs, and asks it. It reads the records from standard input as git cat-file gives
// them.
const sqliteScript = `
import sqlite3, sys, json, subprocess, time, os
root, db = sys.argv[1], sys.argv[2]
c = sqlite3.connect(db)
c.execute("create table steps (item text, created text, step text, status text)")
p = subprocess.run(["git", "-C", root, "ls-tree", "-r", "HEAD", "items"], capture_output=True, text=True, check=True)
names = [l.split()[2] for l in p.stdout.splitlines() if l.endswith("execution.json")]
q = subprocess.Popen(["git", "-C", root, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
import threading
threading.Thread(target=lambda: (q.stdin.write(("\n".join(names) + "\n").encode()), q.stdin.close())).start()
for _ in names:
    size = int(q.stdout.readline().split()[2])
    x = json.loads(q.stdout.read(size)); q.stdout.read(1)
    for w in x["workflows"].values():
        c.executemany("insert into steps values (?,?,?,?)", [(x["item"], w["created"], n, s["status"]) for n, s in w["steps"].items()])
c.execute("create index i on steps (step, status, created)")
c.commit(); c.close()
begin = time.time()
c = sqlite3.connect(db)
n = len(c.execute("select item, created from steps where step = 'convert' and status = 'waiting' order by created").fetchall())
print("%f %d" % (time.time() - begin, n))
`

// sqlite asks the same of an indexed file.
func (b *bench) sqlite() error {
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(python, "-c", "import sqlite3").Run()
	}
	if err != nil {
		fmt.Println("  python3 with sqlite3 is not installed; SQLite is left out")
		return nil
	}
	db := filepath.Join(b.root, ".bagpipe", "bench.sqlite")
	if err := os.RemoveAll(db); err != nil {
		return err
	}
	defer os.RemoveAll(db)
	start := time.Now()
	out, err := exec.Command(python, "-c", sqliteScript, b.root, db).Output()
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	whole := time.Since(start)
	var seconds float64
	var rows int
	if _, err := fmt.Sscanf(string(out), "%f %d", &seconds, &rows); err != nil {
		return fmt.Errorf("sqlite: %q: %w", out, err)
	}
	asked := time.Duration(seconds * float64(time.Second))
	b.row("SQLite: SELECT of the waiting, from an index", asked, 0, fmt.Sprintf("%d rows", rows))
	b.row("SQLite: to fill it from the repository", whole-asked, 0, "")
	return nil
}
