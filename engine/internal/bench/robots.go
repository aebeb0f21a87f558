package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// robotGoal is how many times as fast a program that lives is to be as one started per item.
const robotGoal = 5

// Robots in Python that do nothing: one lives, one is started for each item.
const (
	livingRobot = `import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "shutdown":
        break
    if "id" in m:
        r = {"name": "noop", "version": "1"} if m["method"] == "initialize" else {}
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`
	startedRobot = "import sys, json\n"
)

// living prints how much a robot that lives is faster than one that is started per item, each
// through a whole engine: claim, call and end, all committed.
func (b *bench) living(items int) error {
	ways := []struct {
		name, program, key string
		got                []sample
	}{{name: "started once for each item", program: startedRobot}, {name: "persistent: true", program: livingRobot, key: "    persistent: true\n"}}
	for range b.rounds {
		for i := range ways {
			s, err := b.robotRound(ways[i].program, ways[i].key, items)
			if err != nil {
				return err
			}
			ways[i].got = append(ways[i].got, s)
		}
	}
	rate := func(i int) float64 { return float64(items) / middle(ways[i].got).wall.Seconds() }
	fmt.Printf("\na robot in Python that does nothing, %d items, -j 2, medians of %d\n", items, b.rounds)
	fmt.Printf("%-28s %12s %12s %12s\n", "", "a second", "", "target")
	fmt.Printf("%-28s %12.0f\n", ways[0].name, rate(0))
	fmt.Printf("%-28s %12.0f %10.1f x %10d x\n", ways[1].name, rate(1), rate(1)/rate(0), robotGoal)
	return nil
}

func (b *bench) robotRound(program, key string, items int) (s sample, err error) {
	file := filepath.Join(b.work, "robot.py")
	if err := os.WriteFile(file, []byte(program), 0o666); err != nil {
		return s, err
	}
	w, err := b.newWorkspace("robots", fmt.Sprintf("schema: 1\nname: bench\nsteps:\n  - name: register\n  - name: call\n    command: [python3, %q]\n%s", file, key))
	if err != nil {
		return s, err
	}
	if err := w.register(items); err != nil {
		return s, err
	}
	before, err := w.commits()
	if err != nil {
		return s, err
	}
	if s, err = measure(w.command("run", "-q", "-j", "2")); err != nil {
		return s, err
	}
	after, err := w.commits()
	if err == nil && after-before < 2*items {
		err = fmt.Errorf("%d commits were made, not %d", after-before, 2*items)
	}
	if err != nil {
		return s, err
	}
	return s, w.remove()
}
