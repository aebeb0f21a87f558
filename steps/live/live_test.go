package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bagpipe/steps"
)

// TestMain is the robot, too, when the environment says so.
func TestMain(m *testing.M) {
	if mode := os.Getenv("LIVE_ROBOT"); mode != "" {
		robot(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// robot does the protocol, and breaks it in one way. It notes its starts, and what it was
// asked, in the file LIVE_NOTES.
func robot(mode string) {
	note("start")
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		var all []request
		if json.Unmarshal(in.Bytes(), &all) != nil {
			all = make([]request, 1)
			if err := json.Unmarshal(in.Bytes(), &all[0]); err != nil {
				panic(err)
			}
		}
		note(fmt.Sprintf("%s %d", all[0].Method, len(all)))
		for _, r := range all {
			answer(mode, r)
		}
	}
}

func note(text string) {
	f, err := os.OpenFile(os.Getenv("LIVE_NOTES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, text)
	if err := f.Close(); err != nil {
		panic(err)
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func answer(mode string, r request) {
	params, _ := r.Params.(map[string]any)
	label, _ := params["label"].(string)
	switch r.Method {
	case "initialize":
		if mode == "mute" {
			select {}
		}
		say(`{"jsonrpc":"2.0","id":%d,"result":{"name":"test","version":"1"}}`, r.ID)
	case "reconfigure":
		if mode == "rigid" {
			say(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no such method"}}`, r.ID)
			return
		}
		say(`{"jsonrpc":"2.0","id":%d,"result":{}}`, r.ID)
	case "shutdown":
		if mode == "stubborn" {
			select {}
		}
		os.Exit(0)
	case "process":
		process(mode, r.ID, label, params["scratch"].(string))
	}
}

func process(mode string, id int64, label, scratch string) {
	once := filepath.Join(filepath.Dir(scratch), "once")
	_, err := os.Stat(once)
	first := err != nil
	if first && label == "breaks" {
		if err := os.WriteFile(once, nil, 0o666); err != nil {
			panic(err)
		}
	}
	switch {
	case label == "content", mode == "sick" && label != "well":
		say(`{"jsonrpc":"2.0","id":%d,"error":{"code":65,"message":"no pages"}}`, id)
		return
	case label == "burns":
		for begin := burnt(); burnt()-begin < 50*time.Millisecond; {
		}
	case label == "hangs":
		select {}
	case label == "hungry":
		note(fmt.Sprint(len(make([]byte, 4<<30))))
	case strings.HasPrefix(label, "meets-"):
		if !meets(scratch) {
			say(`{"jsonrpc":"2.0","id":%d,"error":{"code":65,"message":"the others did not come"}}`, id)
			return
		}
	case label == "kills", label == "breaks" && first && mode == "dies":
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(3)
	case label != "breaks" || !first:
	case mode == "half":
		fmt.Print(`{"jsonrpc":"2.0",`)
		os.Exit(0)
	case mode == "prints":
		say("hello")
	case mode == "long":
		fmt.Print(strings.Repeat("x", maxLine+1))
	case mode == "gigabyte":
		for range 1 << 10 { // it is ended before
			fmt.Print(strings.Repeat("x", 1<<20))
		}
	case mode == "other":
		id += 7
	case mode == "forks":
		child := exec.Command("sleep", "1000")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "read", label)
	say(`{"jsonrpc":"2.0","method":"progress","params":{"id":%d,"percent":40,"note":"%s"}}`, id, label)
	say(`{"jsonrpc":"2.0","id":%d,"result":{"message":"did %s","metadata":{"seen":"%s"}}}`, id, label, label)
	if mode == "twice" && label == "breaks" && first {
		say(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id)
	}
}

// burnt is the processor time of this process.
func burnt() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// meeting is how many items wait for each other.
const meeting = 3

// meets reports whether the other items of the meeting are worked on at the same time.
func meets(scratch string) bool {
	if err := os.WriteFile(scratch+".met", nil, 0o666); err != nil {
		panic(err)
	}
	for range 3000 {
		if met, _ := filepath.Glob(filepath.Join(filepath.Dir(scratch), "*.met")); len(met) == meeting {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// fixture is the instances, and a robot of one mode.
type fixture struct {
	*Instances
	spec  *Spec
	dir   string
	notes string
}

func newFixture(t *testing.T, mode string) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{dir: dir, notes: filepath.Join(dir, "notes"),
		Instances: &Instances{Dir: filepath.Join(dir, "robots"), Now: time.Now, Backoff: func(int) time.Duration { return time.Millisecond }}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f.spec = &Spec{Name: "w/ocr", Step: "ocr", Grace: 100 * time.Millisecond, Argv: []string{self},
		Environment: append(os.Environ(), "LIVE_ROBOT="+mode, "LIVE_NOTES="+f.notes, "GORACE=atexit_sleep_ms=0")}
	t.Cleanup(f.Close)
	return f
}

// call gives an item of that label, with a scratch folder of its own.
func (f *fixture) call(t *testing.T, label string, with map[string]any) (*steps.Call, *strings.Builder) {
	t.Helper()
	log := &strings.Builder{}
	c := &steps.Call{Item: "3fa9c0d2e1b7a45", Label: label, Step: "ocr", Workflow: "w.1", With: with, Means: steps.Means{Log: log}}
	c.Scratch = filepath.Join(f.dir, "scratch", label)
	if err := os.MkdirAll(c.Scratch, 0o777); err != nil {
		t.Fatal(err)
	}
	return c, log
}

func (f *fixture) do(t *testing.T, label string) (steps.Result, error) {
	t.Helper()
	c, _ := f.call(t, label, nil)
	return f.Run(t.Context(), f.spec, c)
}

// noted counts the notes that begin with what is given.
func (f *fixture) noted(t *testing.T, what string) int {
	t.Helper()
	data, err := os.ReadFile(f.notes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	return strings.Count("\n"+string(data), "\n"+what)
}

func TestAProgramIsStartedOnceForManyItems(t *testing.T) {
	f := newFixture(t, "good")
	for n := range 20 {
		label := fmt.Sprintf("page-%d", n)
		c, log := f.call(t, label, nil)
		res, err := f.Run(t.Context(), f.spec, c)
		if err != nil || res.Message != "did "+label || res.Metadata["seen"] != label {
			t.Fatalf("%s: %+v, %v", label, res, err)
		}
		if p, ok := steps.ReadProgress(c.Scratch); !ok || p.Percent != 40 || p.Note != label {
			t.Errorf("progress of %s: %+v", label, p)
		}
		if log.String() != "read "+label+"\n" {
			t.Errorf("log of %s: %q", label, log)
		}
	}
	if _, err := f.do(t, "content"); steps.KindOf(err) != steps.Content || err.Error() != "no pages" {
		t.Errorf("a content failure: %v", err)
	}
	if n := f.noted(t, "start"); n != 1 {
		t.Errorf("%d programs were started for one item after the other", n)
	}
}

func TestProcessorTimeIsOfTheItemThatTookIt(t *testing.T) {
	f := newFixture(t, "good")
	took := map[string]time.Duration{}
	for _, label := range []string{"burns", "one", "two"} {
		c, _ := f.call(t, label, nil)
		c.Spent = func(cpu time.Duration) { took[label] = cpu }
		if _, err := f.Run(t.Context(), f.spec, c); err != nil {
			t.Fatal(err)
		}
	}
	if took["burns"] < 50*time.Millisecond || took["two"] >= took["burns"] || len(took) != 3 {
		t.Errorf("%v", took)
	}
}

func TestAnInstanceThatEndsTakesNoItemWithIt(t *testing.T) {
	for _, mode := range []string{"dies", "half", "prints", "long", "gigabyte", "other", "forks"} {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			if _, err := f.do(t, "one"); err != nil {
				t.Fatal(err)
			}
			c, log := f.call(t, "breaks", nil)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			res, err := f.Run(t.Context(), f.spec, c)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 16*maxLine {
				t.Errorf("%d bytes were allocated", took)
			}
			if err != nil || res.Message != "did breaks" {
				t.Fatalf("%+v, %v", res, err)
			}
			if n := f.noted(t, "start"); n != 2 || !strings.Contains(log.String(), "another instance is given the item") {
				t.Errorf("%d programs, log %q", n, log)
			}
		})
	}
}

func TestAnAnswerGivenTwiceEndsTheInstanceAndNotTheItem(t *testing.T) {
	f := newFixture(t, "twice")
	for _, label := range []string{"breaks", "two"} {
		if res, err := f.do(t, label); err != nil || res.Message != "did "+label {
			t.Fatalf("%s: %+v, %v", label, res, err)
		}
	}
}

func TestAnItemThatEndsEveryInstanceFails(t *testing.T) {
	f := newFixture(t, "good")
	_, err := f.do(t, "kills")
	if steps.KindOf(err) != steps.System || err == nil || !strings.Contains(err.Error(), "the robot ended 3 times at this item") || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("%v", err)
	}
	if _, err := f.do(t, "next"); err != nil {
		t.Errorf("the next item: %v", err)
	}
}

func TestAProgramTakesNoMoreMemoryThanItMay(t *testing.T) {
	f := newFixture(t, "good")
	f.spec.Memory = 1 << 30
	if _, err := f.do(t, "hungry"); err == nil || !strings.Contains(err.Error(), "the robot ended 3 times at this item") {
		t.Errorf("%v", err)
	}
	if _, err := f.do(t, "next"); err != nil {
		t.Errorf("the next item: %v", err)
	}
}

func TestWhatIsCancelledIsEndedWithItsInstance(t *testing.T) {
	f := newFixture(t, "good")
	why := errors.New("cancelled by ann")
	ctx, cancel := context.WithCancelCause(t.Context())
	c, _ := f.call(t, "hangs", nil)
	go func() {
		for f.noted(t, "process") == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel(why)
	}()
	if _, err := f.Run(ctx, f.spec, c); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if _, err := f.do(t, "next"); err != nil {
		t.Errorf("the next item: %v", err)
	}
}

func TestNewParametersReachARunningProgram(t *testing.T) {
	for mode, starts := range map[string]int{"good": 1, "rigid": 2} {
		f := newFixture(t, mode)
		for _, language := range []string{"deu", "deu", "lat"} {
			c, _ := f.call(t, "page", map[string]any{"language": language})
			if _, err := f.Run(t.Context(), f.spec, c); err != nil {
				t.Fatal(err)
			}
		}
		if n, asked := f.noted(t, "start"), f.noted(t, "reconfigure"); n != starts || asked != 1 {
			t.Errorf("%s: %d programs, reconfigured %d times", mode, n, asked)
		}
	}
}

func TestItemsThatWaitGoInOneCall(t *testing.T) {
	f := newFixture(t, "good")
	f.spec.Batch = 8
	var wg sync.WaitGroup
	for n := range 40 {
		c, _ := f.call(t, fmt.Sprintf("page-%d", n), nil)
		c.Aside = func(wait func() error) error { return wait() }
		wg.Go(func() {
			if res, err := f.Run(t.Context(), f.spec, c); err != nil || res.Message != "did "+c.Label {
				t.Errorf("%s: %+v, %v", c.Label, res, err)
			}
		})
	}
	wg.Wait()
	if calls, starts := f.noted(t, "process"), f.noted(t, "start"); calls > 20 || starts != 1 {
		t.Errorf("%d calls of %d programs for 40 items in lines of 8", calls, starts)
	}
}

func TestAnInstanceIsStartedForEachItemThatWaits(t *testing.T) {
	f := newFixture(t, "good")
	if _, err := f.do(t, "alone"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range meeting {
		all.Go(func() {
			if _, err := f.do(t, fmt.Sprintf("meets-%d", n)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := f.noted(t, "start"); n != meeting {
		t.Errorf("%d instances for %d items at the same time", n, meeting)
	}
}

func TestSamplesComeBeforeWork(t *testing.T) {
	f := newFixture(t, "good")
	sample := filepath.Join(f.dir, "sample")
	if err := os.MkdirAll(filepath.Join(sample, "source"), 0o777); err != nil {
		t.Fatal(err)
	}
	f.spec.Samples = []string{sample}
	if err := f.Warm(t.Context(), f.spec); err != nil {
		t.Fatal(err)
	}
	if n := f.noted(t, "process"); n != 1 {
		t.Errorf("%d samples were processed", n)
	}
	f.spec.Samples = []string{filepath.Join(f.dir, "kills")}
	if err := os.MkdirAll(f.spec.Samples[0], 0o777); err != nil {
		t.Fatal(err)
	}
	if err := f.Warm(t.Context(), f.spec); err == nil || !strings.Contains(err.Error(), "warm-up with") {
		t.Errorf("a sample that ends the program: %v", err)
	}
}

func TestAProgramThatHangsIsEnded(t *testing.T) {
	mute := newFixture(t, "mute")
	mute.spec.InitMost = 20 * time.Millisecond
	_, err := mute.do(t, "page")
	var later *steps.Later
	if !errors.As(err, &later) || !strings.Contains(err.Error(), "has not answered initialize") {
		t.Errorf("mute: %v", err)
	}
	stubborn := newFixture(t, "stubborn")
	if _, err := stubborn.do(t, "page"); err != nil {
		t.Fatal(err)
	}
	stubborn.Close() // or goleak finds its goroutines
}

func TestAProgramThatIsNotThereIsTriedLater(t *testing.T) {
	f := newFixture(t, "good")
	f.spec.Argv = []string{filepath.Join(f.dir, "gone")}
	_, err := f.do(t, "page")
	var later *steps.Later
	if !errors.As(err, &later) || !strings.Contains(err.Error(), "its robot does not start") {
		t.Errorf("%v", err)
	}
}

// An instance that fails too often is ended, and another is given what comes next; when that
// happens again and again it is told of.
func TestAnInstanceThatReachesItsThresholdIsStartedAnew(t *testing.T) {
	f := newFixture(t, "sick")
	told := make(chan string, 9)
	f.spec.Failures, f.spec.Window, f.spec.Sick = 2, 3, func(text string) { told <- text }
	for n, label := range strings.Fields("a well b c a b c d e well f") {
		c, log := f.call(t, label+fmt.Sprint(n), nil)
		c.Label = label
		_, err := f.Run(t.Context(), f.spec, c)
		if (err == nil) != (label == "well") {
			t.Errorf("%d %s: %v", n, label, err)
		}
		if ended := strings.Contains(log.String(), "2 of the last "); ended != (n == 2 || n == 4 || n == 6 || n == 8) {
			t.Errorf("%d %s: log %q", n, label, log)
		}
	}
	f.Close()
	close(told)
	if text := <-told; text != "2 of the last 2 items of an instance failed, and so with the 3 before it" || len(told) > 0 {
		t.Errorf("told %q, and %d more", text, len(told))
	}
	if n := f.noted(t, "start"); n != 5 {
		t.Errorf("%d programs were started", n)
	}
}

// A program in Python that lives does at least five times as many items in a time as one that is
// started for each.
func TestALivingProgramIsFiveTimesAsFast(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	const living = `import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "shutdown":
        break
    r = {"name": "noop", "version": "1"} if m["method"] == "initialize" else {}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`
	f := newFixture(t, "good")
	f.spec.Argv = []string{python, "-c", living}
	rate := func(items int, robot func(*steps.Call) (steps.Result, error)) float64 {
		begin := time.Now()
		for n := range items {
			c, _ := f.call(t, fmt.Sprintf("page-%d", n), nil)
			if _, err := robot(c); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(c.Scratch); err != nil {
				t.Fatal(err)
			}
		}
		return float64(items) / time.Since(begin).Seconds()
	}
	once := steps.Command([]string{python, "-c", "import sys, json; json.load(sys.stdin)"})
	each := rate(40, func(c *steps.Call) (steps.Result, error) { return once.Run(t.Context(), c) })
	lives := rate(400, func(c *steps.Call) (steps.Result, error) { return f.Run(t.Context(), f.spec, c) })
	t.Logf("%.0f items a second by programs of their own, %.0f by one that lives", each, lives)
	if lives < 5*each {
		t.Error("less than five times as many")
	}
}
