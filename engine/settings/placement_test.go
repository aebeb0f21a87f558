package settings

import (
	"testing"

	"bagpipe/engine/state"
	"bagpipe/steps"
)

// A worker has not what the engine's settings and history say: built-in robots that ask for it are not sent there.
func TestRobotsThatAskTheEngineStayThere(t *testing.T) {
	own := &Snapshot{Settings: &Settings{Describing: Describing{Formats: "formats.sig"}}}
	plain := &Snapshot{Settings: &Settings{}}
	for robot, c := range map[string]struct {
		now   *Snapshot
		stays bool
	}{"bag": {plain, true}, "tag": {plain, true}, "views": {plain, true}, "quality": {plain, true}, "shelve": {plain, true}, "publish": {plain, true}, "deposit": {plain, true},
		"validate": {plain, false}, "unpack": {plain, false}, "inventory": {own, false}, "identify": {own, true}} {
		s := &state.Step{Name: robot, How: state.How{Robot: robot}}
		if why := StaysHere(s, steps.Builtins(), c.now.Asks()); (why != "") != c.stays {
			t.Errorf("%s stays here: %q", robot, why)
		}
		s.Command = []string{robot} // a program of that name is another
		if why := StaysHere(s, steps.Builtins(), c.now.Asks()); why != "" {
			t.Errorf("the program %s stays here: %q", robot, why)
		}
	}
}
