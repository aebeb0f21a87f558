package audit_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/audit"
	"bagpipe/layout"
)

var histories = flag.Int("histories", 30, "how many histories with one thing wrong TestRewrittenHistoriesAreFound makes")

// stream is a history as git fast-export tells it, in parts.
type stream struct {
	parts []part
	mark  map[string]int // of blobs
}

type part struct {
	commit bool
	head   string // before the data
	data   string
	tail   string // after it
}

func parse(told []byte) *stream {
	s := &stream{mark: map[string]int{}}
	var p *part
	for len(told) > 0 {
		line, rest, _ := bytes.Cut(told, []byte("\n"))
		told = rest
		word, value, _ := strings.Cut(string(line), " ")
		switch {
		case word == "blob", word == "commit":
			s.parts = append(s.parts, part{commit: word == "commit"})
			p = &s.parts[len(s.parts)-1]
			p.head = string(line) + "\n"
		case p == nil:
			s.parts = append(s.parts, part{head: string(line) + "\n"})
		case word == "data":
			var n int
			fmt.Sscan(value, &n)
			p.data, told = string(told[:n]), told[n:]
		case p.data == "" && p.tail == "":
			if p.head += string(line) + "\n"; word == "mark" && !p.commit {
				s.mark[value] = len(s.parts) - 1
			}
		default:
			p.tail += string(line) + "\n"
		}
	}
	return s
}

func (s *stream) bytes() []byte {
	var out bytes.Buffer
	for _, p := range s.parts {
		out.WriteString(p.head)
		if strings.HasPrefix(p.head, "blob") || p.commit {
			fmt.Fprintf(&out, "data %d\n%s", len(p.data), p.data)
		}
		out.WriteString(p.tail)
	}
	return out.Bytes()
}

func (s *stream) clone() *stream { return &stream{slices.Clone(s.parts), s.mark} }

// commits are the places of the commits, and files those of a commit's blobs by path.
func (s *stream) commits() (at []int) {
	for i, p := range s.parts {
		if p.commit {
			at = append(at, i)
		}
	}
	return at
}

var changed = regexp.MustCompile(`(?m)^M 100644 (:\d+) (.*)$`)

func (s *stream) file(commit int, end string) (blob int, ok bool) {
	for _, m := range changed.FindAllStringSubmatch(s.parts[commit].tail, -1) {
		if strings.HasSuffix(m[2], end) {
			return s.mark[m[1]], true
		}
	}
	return 0, false
}

func itemOf(message string) string {
	_, rest, ok := strings.Cut(message, "\nBagpipe-Item: ")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "\n")
	return id
}

// other gives another letter or figure of the same kind.
func other(r *rand.Rand, c byte) byte {
	of := "0123456789"
	switch {
	case c >= 'a' && c <= 'f':
		of = "abcdef"
	case c >= 'a' && c <= 'z':
		of = "ghijklmnopqrstuvwxyz"
	case c >= 'A' && c <= 'Z':
		of = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	}
	for {
		if d := of[r.Intn(len(of))]; d != c {
			return d
		}
	}
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// alter changes one letter or figure of text in a place that the pattern's group takes in.
func alter(r *rand.Rand, text string, pattern *regexp.Regexp) (string, bool) {
	all := pattern.FindAllStringSubmatchIndex(text, -1)
	if len(all) == 0 {
		return text, false
	}
	m := all[r.Intn(len(all))]
	var at []int
	for i := m[2]; i < m[3]; i++ {
		if isWord(text[i]) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return text, false
	}
	i := at[r.Intn(len(at))]
	return text[:i] + string(other(r, text[i])) + text[i+1:], true
}

// wrongs are the things that are wrong with a history; each alters one commit, or two.
var wrongs = []struct {
	name string
	do   func(r *rand.Rand, s *stream, commit int) (also int, ok bool)
}{
	{"subject", func(r *rand.Rand, s *stream, c int) (int, bool) {
		return c, inMessage(r, s, c, regexp.MustCompile(`\A([^\n]*)`))
	}},
	{"trailer", func(r *rand.Rand, s *stream, c int) (int, bool) {
		return c, inMessage(r, s, c, regexp.MustCompile(`(?m)^Bagpipe-(?:Item|Workflow|Step|From|To|Attempt|Intent): (.*)$`))
	}},
	{"attempt", func(r *rand.Rand, s *stream, c int) (int, bool) {
		return c, inFile(r, s, c, "execution.json", regexp.MustCompile(`"state": "([a-z-]+)"`))
	}},
	{"status", func(r *rand.Rand, s *stream, c int) (int, bool) {
		return c, inFile(r, s, c, "execution.json", regexp.MustCompile(`"status": "([a-z-]+)"`))
	}},
	{"time", func(r *rand.Rand, s *stream, c int) (int, bool) {
		return c, inFile(r, s, c, "execution.json", regexp.MustCompile(`"(?:claimed|started|ended|at|created)": "2(\d\d\d)-`))
	}},
	{"plan", func(r *rand.Rand, s *stream, c int) (int, bool) {
		return c, inFile(r, s, c, "execution.json", regexp.MustCompile(`"digest": "sha256:([0-9a-f]+)"`))
	}},
	{"digest", func(r *rand.Rand, s *stream, c int) (int, bool) {
		return c, inFile(r, s, c, "inventory.json", regexp.MustCompile(`"sha(?:256|512)": "([0-9a-f]+)"`))
	}},
	{"size", func(r *rand.Rand, s *stream, c int) (int, bool) {
		return c, inFile(r, s, c, "inventory.json", regexp.MustCompile(`"size": ([0-9]+)`))
	}},
	{"definition", func(r *rand.Rand, s *stream, c int) (int, bool) {
		return c, inFile(r, s, c, ".yaml", regexp.MustCompile(`(?m)^name: (\w+)$`))
	}},
	{"lie that answers", func(_ *rand.Rand, s *stream, c int) (int, bool) {
		p := &s.parts[c]
		ok := lie(p)
		p.data = strings.TrimRight(p.data, "\n") + "\nBagpipe-Answers: 0123456789012345678901234567890123456789\n"
		return c, ok
	}},
	{"lie with two parents", func(_ *rand.Rand, s *stream, c int) (int, bool) {
		p := &s.parts[c]
		if !lie(p) || !strings.HasPrefix(p.tail, "from ") {
			return c, false
		}
		from, rest, _ := strings.Cut(p.tail, "\n")
		first := regexp.MustCompile(`(?m)^mark (:\d+)$`).FindStringSubmatch(s.parts[s.commits()[0]].head)[1]
		p.tail = from + "\nmerge " + first + "\n" + rest
		return c, from != "from "+first
	}},
	{"commit's date", func(_ *rand.Rand, s *stream, c int) (int, bool) {
		p := &s.parts[c]
		before := p.head
		p.head = regexp.MustCompile(`(?m)^(committer .*> )1(\d{9}) `).ReplaceAllString(p.head, "${1}2${2} ")
		return c, p.head != before && strings.Contains(p.data, "Bagpipe-To: completed")
	}},
	{"empty copies", func(_ *rand.Rand, s *stream, c int) (int, bool) {
		return c, addEmpty(s, c, "deposits.json")
	}},
	{"empty deliveries", func(_ *rand.Rand, s *stream, c int) (int, bool) {
		return c, addEmpty(s, c, "delivery.json")
	}},
	{"nothing recorded", func(r *rand.Rand, s *stream, c int) (int, bool) {
		p := &s.parts[c]
		if !strings.Contains(p.data, "Bagpipe-Attempt: ") {
			return c, false
		}
		before := p.tail
		p.tail = regexp.MustCompile(`(?m)^M 100644 \S+ items/.*\n`).ReplaceAllString(p.tail, "")
		return c, p.tail != before
	}},
}

// lie words the end of a step as a failure.
func lie(p *part) bool {
	before := p.data
	p.data = strings.Replace(strings.Replace(p.data, ": completed ", ": failed ", 1), "Bagpipe-To: completed", "Bagpipe-To: failed", 1)
	return p.data != before && strings.Contains(before, "Bagpipe-To: completed")
}

// addEmpty adds an empty file to the item's folder.
func addEmpty(s *stream, c int, name string) bool {
	p := &s.parts[c]
	for _, m := range changed.FindAllStringSubmatch(p.tail, -1) {
		if dir, ok := strings.CutSuffix(m[2], "execution.json"); ok && !strings.Contains(p.tail, name) {
			p.tail = strings.TrimRight(p.tail, "\n") + "\nM 100644 inline " + dir + name + "\ndata 0\n\n"
			return true
		}
	}
	return false
}

func inMessage(r *rand.Rand, s *stream, c int, pattern *regexp.Regexp) (ok bool) {
	if itemOf(s.parts[c].data) == "" {
		return false
	}
	s.parts[c].data, ok = alter(r, s.parts[c].data, pattern)
	return ok
}

func inFile(r *rand.Rand, s *stream, c int, name string, pattern *regexp.Regexp) (ok bool) {
	blob, ok := s.file(c, name)
	if !ok || itemOf(s.parts[c].data) == "" {
		return false
	}
	s.parts[blob].data, ok = alter(r, s.parts[blob].data, pattern)
	return ok
}

// Histories with one thing wrong: the audit names the commit that is wrong, or, where that is
// lawful by itself, the next one of the item, which contradicts it.
func TestRewrittenHistoriesAreFound(t *testing.T) {
	root := worked(t)
	honest := parse(git(t, root, nil, "fast-export", "--reencode=no", "main"))
	if _, found := audited(t, rewritten(t, honest.bytes())); len(found) > 0 {
		t.Fatalf("an honest history, told again: %v", found)
	}
	r := rand.New(rand.NewSource(3))
	commits := honest.commits()
	made := map[string]int{}
	for n := 0; n < *histories; {
		w := wrongs[n%len(wrongs)]
		s, c := honest.clone(), commits[1+r.Intn(len(commits)-1)]
		also, ok := w.do(r, s, c)
		if !ok {
			if made[w.name+" refused"]++; made[w.name+" refused"] > 10_000 {
				t.Fatalf("%s fits no commit", w.name)
			}
			continue
		}
		n++
		made[w.name]++
		named := []int{c, also}
		for _, later := range commits { // the next of the item
			if item := itemOf(honest.parts[c].data); later > max(c, also) && item != "" && itemOf(honest.parts[later].data) == item {
				named = append(named, later)
				break
			}
		}
		root := rewritten(t, s.bytes())
		hashes := strings.Fields(string(git(t, root, nil, "rev-list", "--reverse", "main")))
		_, found := audited(t, root)
		hit := slices.ContainsFunc(found, func(f audit.Finding) bool {
			i := slices.Index(hashes, f.Commit)
			return i >= 0 && slices.Contains(named, commits[i])
		})
		if !hit {
			t.Errorf("history %d, %s, %q: none of %d findings names it: %v", n, w.name, strings.SplitN(honest.parts[c].data, "\n", 2)[0], len(found), found)
		}
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(made)
}

// A byte of a pack that is not what it was is told of, wherever it is.
func TestAByteFlippedInAPackIsFound(t *testing.T) {
	root := rewritten(t, git(t, worked(t), nil, "fast-export", "--reencode=no", "main"))
	git(t, root, nil, "--git-dir=.git", "repack", "-adq")
	packs, err := filepath.Glob(filepath.Join(root, ".git", "objects", "pack", "*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	if err := os.Chmod(packs[0], 0o644); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewSource(5))
	for range max(*histories/20, 3) {
		bad := bytes.Clone(sound)
		bad[12+r.Intn(len(bad)-12)] ^= byte(1 + r.Intn(255))
		if err := os.WriteFile(packs[0], bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if !damaged(t, root) {
			t.Error("an audit found nothing")
		}
	}
}

func damaged(t *testing.T, root string) bool {
	o := options()
	o.ReadOnly = true
	e, err := engine.Open(context.Background(), root, o)
	if err != nil {
		return true
	}
	defer e.Close()
	n := 0
	_, err = audit.New(e.Ledger, e.Guard).Run(context.Background(), audit.Options{}, func(audit.Finding) { n++ })
	return err != nil || n > 0
}

// A history as versions wrote it that told of no start with the claim, of no start of a
// workflow, and of none that is scheduled, is as honest as another.
func TestAHistoryOfAnEarlierVersionIsHonest(t *testing.T) {
	root, ctx := worked(t), context.Background()
	e, err := engine.Open(ctx, root, options())
	if err != nil {
		t.Fatal(err)
	}
	item := layout.ItemID(itemOf(string(git(t, root, nil, "log", "-1", "--grep=^Bagpipe-Item: ", "--format=%B", "main"))))
	if err := os.WriteFile(filepath.Join(root, "workflows", "later.yaml"), []byte("schema: 1\nname: later\nsteps:\n  - name: register\n  - name: out\n    robot: noop\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := e.Settings.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	name, err := e.Act.Start(ctx, item, "later", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	_, errOff := e.Act.Deactivate(ctx, item, name, "not yet")
	_, errOn := e.Act.Activate(ctx, item, name, "yes")
	if err := errors.Join(errOff, errOn, e.Close()); err != nil {
		t.Fatal(err)
	}
	s := parse(git(t, root, nil, "fast-export", "--reencode=no", "main"))
	inProgress := regexp.MustCompile(`(?s)\n *"started": "[^"]*",(\n *"state": "in-progress")`)
	ofWorkflow := regexp.MustCompile(`(?m)^      "started": .*\n`)
	told := map[string]int{}
	for i := range s.parts {
		p := &s.parts[i]
		if p.commit {
			told["scheduled"] += strings.Count(p.data, ": scheduled\n")
			p.data = strings.ReplaceAll(p.data, ": scheduled\n", ": in-progress\n")
			continue
		}
		if !strings.Contains(p.data, `"workflows": {`) {
			continue
		}
		told["started with the claim"] += len(inProgress.FindAllString(p.data, -1))
		told["start of a workflow"] += len(ofWorkflow.FindAllString(p.data, -1))
		p.data = ofWorkflow.ReplaceAllString(inProgress.ReplaceAllString(p.data, "$1"), "")
		p.data = strings.ReplaceAll(p.data, `"status": "scheduled"`, `"status": "in-progress"`)
	}
	for _, what := range []string{"scheduled", "started with the claim", "start of a workflow"} {
		if told[what] == 0 {
			t.Errorf("the history tells of no %s", what)
		}
	}
	if _, found := audited(t, rewritten(t, s.bytes())); len(found) > 0 {
		t.Errorf("%v", found)
	}
}
