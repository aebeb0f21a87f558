package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	manyPosts    = 100_000
	people       = 200
	collections  = 50
	membersEach  = 40
	manyOnClock  = 10_000
	dueSoon      = 200
	fixityItems  = 400
	fixityBytes  = 1 << 20
	limitedBytes = 40 << 20 // in a second
)

// feeds prints how long all feeds of a history take, against git log printing its trailers.
func (b *bench) feeds(posts int) (err error) {
	w, err := b.newWorkspace("feeds", noopWorkflow())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	for c := range collections {
		var members []string
		for m := range membersEach {
			members = append(members, fmt.Sprintf("p%d@example.org", (c*7+m*3)%people))
		}
		if err := w.write(fmt.Sprintf("feeds/collections/c%d.yaml", c), "schema: 1\nmembers: ["+strings.Join(members, ", ")+"]\n"); err != nil {
			return err
		}
	}
	if _, err := measure(w.command("status")); err != nil { // takes the settings in
		return err
	}
	if err := w.post(posts); err != nil {
		return err
	}
	took, err := w.feedsInTurn()
	if err != nil {
		return err
	}
	entries, size, err := w.entries()
	if err != nil {
		return err
	}
	late, err := w.lateInFeeds()
	if err != nil {
		return err
	}
	floor, one, two, show := took["floor"], took["one"], took["two"], took["shown"]
	fmt.Printf("\nfeeds: %d posts, %d collections of %d members, 3 formats; medians of %d\n"+
		"  git log with trailers          %s\n  all feeds, one processor       %s\n  all feeds, two processors      %s: %.1f x git log (target: 5), %.2f x one (target: 1.6)\n"+
		"  processor time                 %.1f x git log by one, %.1f x by two\n"+
		"  %d entries, %.2f bytes on disk for each (target: 16), beside the texts\n  200 entries shown in %d ms, the program's start in it (target: 50), %d ms of processor\n"+
		"  a post is in its feeds after %d ms at most of %d (target: 2000)\n",
		posts, collections, membersEach, b.rounds, floor.wall, one.wall, two.wall, two.wall.Seconds()/floor.wall.Seconds(), one.wall.Seconds()/two.wall.Seconds(),
		one.cpu.Seconds()/floor.cpu.Seconds(), two.cpu.Seconds()/floor.cpu.Seconds(), entries, float64(size)/float64(max(entries, 1)),
		show.wall.Milliseconds(), show.cpu.Milliseconds(), late.Milliseconds(), postsSeen)
	return nil
}

// feedsInTurn gives the medians of the floor, of the feeds made by one processor and by two, a worker each, and
// of one feed shown. They take turns: what else the machine does is the same for all.
func (w *workspace) feedsInTurn() (map[string]sample, error) {
	all, took := map[string][]sample{}, map[string]sample{}
	for round := range w.b.rounds + 1 { // the first has the files in memory
		for _, name := range []string{"floor", "one", "two", "shown"} {
			c := w.command("feed", "regenerate")
			switch name {
			case "floor":
				c = w.b.command("git", "-C", w.root, "log", "--format=%H %(trailers)", "main")
			case "one":
				c.Env = append(os.Environ(), "GOMAXPROCS=1")
			case "two":
				c.Env = append(os.Environ(), "GOMAXPROCS=2")
			case "shown":
				c = w.command("feed", "show", "--collection", "c1", "--limit", "200")
			}
			got, err := measure(c)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				all[name] = append(all[name], got)
			}
		}
	}
	for name, samples := range all {
		took[name] = middle(samples)
	}
	return took, nil
}

// postsSeen is how many posts are followed into their feeds.
const postsSeen = 10

// lateInFeeds is how long a running engine takes at most from a post's commit to its entries.
func (w *workspace) lateInFeeds() (most time.Duration, err error) {
	c := w.command("run", "--watch", "-q")
	if err := c.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Process.Signal(syscall.SIGTERM), c.Wait()) }()
	if err := w.settled(c.Process.Pid); err != nil {
		return 0, err
	}
	for range postsSeen {
		before := w.sizeOf("part-*")
		if _, err := measure(w.command("feed", "post", "museum.loan", "--collection", "default", "--data", "{}")); err != nil {
			return most, err
		}
		begin := time.Now()
		for w.sizeOf("part-*") == before {
			if time.Since(begin) > time.Minute {
				return most, errors.New("a post does not come into its feeds")
			}
			time.Sleep(5 * time.Millisecond)
		}
		most = max(most, time.Since(begin))
	}
	return most, nil
}

// sizeOf is how many bytes the files of the feeds have that a pattern names.
func (w *workspace) sizeOf(pattern string) (size int64) {
	files, _ := filepath.Glob(filepath.Join(w.root, ".bagpipe/feeds/*", pattern)) // a pattern that can be read
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	return size
}

func (w *workspace) write(name, text string) error {
	path := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o666)
}

// postsInFolder is how many posts stand in one folder: each commit writes its folder anew.
const postsInFolder = 500

// post adds commits that are posts, by git's own means.
func (w *workspace) post(n int) error {
	c := w.b.command("git", "-C", w.root, "fast-import", "--quiet", "--date-format=raw")
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	begin := time.Now().Add(-time.Duration(n) * time.Second / 10).Unix()
	for i := range n {
		name := fmt.Sprintf("posts/%04d/11/%08d", i/postsInFolder, i)
		body := fmt.Sprintf("{\"app\": \"loans\", \"by\": \"x\", \"collection\": \"c%d\", \"data\": {\"title\": \"Map %d lent\"}, \"schema\": 1, \"type\": \"museum.loan\"}\n", i%collections, i)
		message := fmt.Sprintf("post: museum.loan\n\nBagpipe-Post: %s\nBagpipe-Agent: P <p%d@example.org>\n", name, i%people)
		fmt.Fprintf(in, "commit refs/heads/main\nauthor P%d <p%d@example.org> %d +0000\ncommitter Bagpipe <bagpipe@bench> %d +0000\ndata %d\n%s\n",
			i%people, i%people, begin+int64(i/10), begin+int64(i/10), len(message), message)
		if i == 0 {
			fmt.Fprintf(in, "from refs/heads/main^0\n")
		}
		fmt.Fprintf(in, "M 100644 inline %s.json\ndata %d\n%s\n", name, len(body), body)
	}
	return errors.Join(in.Close(), c.Wait())
}

// entries counts the entries of all feeds, and the bytes of their files but those of the texts.
func (w *workspace) entries() (n int, size int64, err error) {
	out, err := w.command("feed", "posts", "--json").Output()
	if err != nil {
		return 0, 0, err
	}
	var posts []struct {
		To []string `json:"to"`
	}
	if err := json.Unmarshal(out, &posts); err != nil {
		return 0, 0, err
	}
	for _, p := range posts {
		n += len(p.To)
	}
	for _, pattern := range []string{"part-*", "posts", "audiences"} {
		size += w.sizeOf(pattern)
	}
	return n, size, nil
}

// schedules prints what very many schedules cost while none is due, and how exactly those are
// fired that are.
func (b *bench) schedules() (err error) {
	w, err := b.newWorkspace("schedules", busyWorkflow())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	files := map[string]string{}
	for i := range manyOnClock {
		files[fmt.Sprintf("schedules/n%d.yaml", i)] = fmt.Sprintf("schema: 1\nname: n%d\ntrigger: {cron: '%d %d 1 1 *'}\ndo: {command: ['true']}\n", i, i%60, i/60%24)
	}
	if _, err := measure(w.command("status")); err != nil { // takes the settings in
		return err
	}
	if err := w.push(files); err != nil {
		return err
	}
	c := w.command("run", "--watch", "-q")
	if err := c.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Process.Signal(syscall.SIGTERM), c.Wait()) }()
	if err := w.settled(c.Process.Pid); err != nil {
		return err
	}
	begin, before := time.Now(), used(c.Process.Pid)
	time.Sleep(20 * time.Second)
	idle := float64(used(c.Process.Pid)-before) / float64(time.Since(begin))
	soon := time.Now().Add(time.Minute).Truncate(time.Second)
	clear(files)
	for i := range dueSoon {
		at := soon.Add(time.Duration(i) * 100 * time.Millisecond)
		files[fmt.Sprintf("schedules/d%d.yaml", i)] = fmt.Sprintf("schema: 1\nname: d%d\ntrigger: {at: '%s'}\ndo: {command: ['true']}\n", i, at.Format(time.RFC3339))
	}
	if err := w.push(files); err != nil {
		return err
	}
	if err := w.register(busyItems); err != nil {
		return err
	}
	time.Sleep(time.Until(soon.Add(dueSoon * 100 * time.Millisecond)))
	left, err := w.git("grep", "-l", "\"status\": \"waiting\"", "main", "--", "items/**/execution.json")
	if err != nil { // none
		left = ""
	}
	time.Sleep(10 * time.Second)
	late, err := w.late()
	if err != nil {
		return err
	}
	commits, err := w.git("log", "--format=%s", "--grep", "^Bagpipe-Due: ", "main")
	if err != nil {
		return err
	}
	fmt.Printf("\nschedules: %d, none due: %.2f %% of a processor (target: 1); %d due one after the other, each 100 ms: fired %d ms after their time, p99 (target: 1000), with %.1f commits each (target: 2), beside steps that use all processors, of which %d items were left\n",
		manyOnClock, 100*idle, len(late), percentile(late, 99).Milliseconds(), float64(strings.Count(commits, "\n")+1)/float64(max(1, len(late))), len(strings.Fields(left)))
	return nil
}

// busyItems is how many items have steps that use all processors while schedules fall due.
const busyItems = 600

// busyWorkflow has steps that count for a while.
func busyWorkflow() string {
	var b strings.Builder
	b.WriteString("schema: 1\nname: bench\nsteps:\n  - name: register\n")
	for i := range stepsEach {
		fmt.Fprintf(&b, "  - name: step%d\n    command: [sh, -c, 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done']\n", i+1)
	}
	return b.String()
}

// push commits files as somebody does who pushes them. No upkeep that outlives the command writes into the clone as it is removed.
func (w *workspace) push(files map[string]string) error {
	clone := filepath.Join(w.b.work, "clone")
	defer os.RemoveAll(clone)
	if _, err := measure(w.b.command("git", "clone", "-q", "-c", "maintenance.auto=false", w.root, clone)); err != nil {
		return err
	}
	from := &workspace{b: w.b, root: clone}
	for name, text := range files {
		if err := from.write(name, text); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qm", "schedules"}, {"push", "-q"}} {
		c := w.b.command("git", append([]string{"-C", clone}, args...)...)
		c.Env = append(os.Environ(), "PATH="+filepath.Dir(w.b.program)+":"+os.Getenv("PATH"))
		if _, err := measure(c); err != nil {
			return err
		}
	}
	return nil
}

// settled waits until a process has used little for a while, so long that it was not only waiting for the disk.
func (w *workspace) settled(pid int) error {
	for range 60 {
		before := used(pid)
		time.Sleep(3 * time.Second)
		if used(pid)-before < 100*time.Millisecond {
			return nil
		}
	}
	return errors.New("the engine does not come to rest")
}

// late is by how much firings began after their time.
func (w *workspace) late() (all []time.Duration, err error) {
	for i := range dueSoon {
		data, err := os.ReadFile(filepath.Join(w.root, fmt.Sprintf("schedules/state/d%d.json", i)))
		if err != nil {
			return nil, err
		}
		var s struct {
			Firings map[time.Time]struct {
				Begun time.Time `json:"begun"`
			} `json:"firings"`
		}
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, err
		}
		for due, f := range s.Firings {
			all = append(all, f.Begun.Sub(due))
		}
	}
	return all, nil
}

// used is what a process has used of processors.
func used(pid int) time.Duration {
	d, err := cpuOf(pid)
	if err != nil {
		return 0
	}
	return d
}

// fixity prints how fast bags are checked, against sha512sum on the same files, and how exactly
// a rate is kept.
func (b *bench) fixity() (err error) {
	w, err := b.newWorkspace("fixity", noopWorkflow())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	data := make([]byte, fixityBytes)
	args := []string{"add", "--workflow", "accession"}
	for i := range fixityItems {
		copy(data, strconv.Itoa(i))
		path := filepath.Join(b.work, "bytes", strconv.Itoa(i))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			return err
		}
		args = append(args, path)
	}
	for _, c := range [][]string{args, {"run", "-q"}} {
		if _, err := measure(w.command(c...)); err != nil {
			return err
		}
	}
	for name, more := range map[string]string{"all": "", "limited": fmt.Sprintf(", rate: %dMiB/s", limitedBytes>>20)} {
		if err := w.write("schedules/"+name+".yaml", "schema: 1\nname: "+name+"\ntrigger: {at: 2099-01-01}\ndo: {fixity: store"+more+"}\n"); err != nil {
			return err
		}
	}
	floor := b.command("sh", "-c", "find \"$1\"/store -type f -print0 | xargs -0 -P2 -n 64 sha512sum >/dev/null", "-", w.root)
	least, err := measure(floor)
	if err != nil {
		return err
	}
	ours, err := measure(w.command("schedule", "fire", "all"))
	if err != nil {
		return err
	}
	limited, err := measure(w.command("schedule", "fire", "limited"))
	if err != nil {
		return err
	}
	const all = float64(fixityItems * fixityBytes)
	fmt.Printf("\nfixity: %d bags of %d MiB: %.0f MB/s, %.2f x xargs -P2 sha512sum (target: 0.9); limited to %d MB/s it reads %.1f\n",
		fixityItems, fixityBytes>>20, all/1e6/ours.wall.Seconds(), least.wall.Seconds()/ours.wall.Seconds(), limitedBytes/1_000_000, all/1e6/limited.wall.Seconds())
	return nil
}

func percentile(d []time.Duration, of int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, len(d)*of/100)]
}
