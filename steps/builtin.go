package steps

import "bagpipe/layout"

// Builtin is a robot that ships with Bagpipe, and the parameters it takes under
// with:. One that is Bare writes nothing into Call.Scratch, and gets none; one that is
// Childless makes no children; one that Deposits works in Call.Store.
type Builtin struct {
	Robot      Robot
	Parameters []string
	Check      func(with map[string]any) error // a *ParameterError for a value the robot would refuse; nil: it takes any
	Bare       bool
	Childless  bool
	Deposits   bool
}

// Builtins gives the robots by the name that stands under robot:.
func Builtins() map[layout.Name]Builtin {
	return map[layout.Name]Builtin{
		"unpack": {Robot: Func(unpack), Parameters: []string{"nested", "names"}, Check: checks(unpackParams), Childless: true},
		"split": {Robot: Func(split), Parameters: []string{"each", "by", "match", "kind", "collection", "workflow", "lane"},
			Check: checks(splitParams)},
		"validate":  {Robot: Func(validate), Childless: true},
		"inventory": {Robot: Func(inventory), Childless: true},
		"bag":       {Robot: Func(bag), Parameters: []string{"algorithms"}, Check: checks(algorithmsParam), Childless: true},
		"deposit":   {Robot: Func(deposit), Parameters: []string{"store"}, Check: checks(storeParam), Childless: true, Deposits: true},
		"cleanup":   {Robot: Func(cleanup), Bare: true, Childless: true, Deposits: true},
		"noop":      {Robot: Func(noop), Parameters: []string{"sleep", "fail", "message"}, Check: checks(noopParams), Bare: true, Childless: true},
	}
}

// checks makes how a robot reads its parameters a check of them.
func checks[T any](read func(with map[string]any) (T, error)) func(map[string]any) error {
	return func(with map[string]any) error {
		_, err := read(with)
		return err
	}
}
