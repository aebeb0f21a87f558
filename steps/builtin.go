package steps

import "bagpipe/layout"

// Builtin is a robot that ships with Bagpipe, and the parameters it takes under
// with:. One that is Bare writes nothing into Call.Scratch, and gets none; one that is
// Seldom mostly does not, and makes the folder (Call.MakeScratch) when it does; one that is
// Fileless reads no file of the item, its records alone; one that is
// Childless makes no children; one that Deposits works in Call.Store; one that Archives
// keeps the item's records, and is given them all.
type Builtin struct {
	Robot      Robot
	Parameters []string
	Check      func(with map[string]any) error // a *ParameterError for a value the robot would refuse; nil: it takes any
	Bare       bool
	Seldom     bool
	Fileless   bool
	Childless  bool
	Deposits   bool
	Archives   bool
	Here       string // why it runs on the engine's machine alone, whose means it uses; "": anywhere
}

// Builtins gives the robots by the name that stands under robot:.
func Builtins() map[layout.Name]Builtin {
	return map[layout.Name]Builtin{
		"unpack": {Robot: Func(unpack), Parameters: []string{"nested", "names"}, Check: checks(unpackParams), Childless: true},
		"split": {Robot: Func(split), Parameters: []string{"each", "by", "match", "kind", "collection", "workflow", "lane"},
			Check: checks(splitParams)},
		"validate":   {Robot: Func(validate), Seldom: true, Childless: true},
		"inventory":  {Robot: Func(inventory), Seldom: true, Childless: true},
		"identify":   {Robot: Func(identify), Childless: true},
		"virus-scan": {Robot: Func(virusScan), Parameters: []string{"address", "time", "unavailable", "unscanned"}, Check: checks(virusParams), Childless: true},
		"views":      {Robot: Func(drawViews), Childless: true, Here: "its pictures are kept beside the items"},
		"describe":   {Robot: Func(describeObject), Parameters: []string{"business"}, Check: checks(businessParam), Childless: true},
		"tag":        {Robot: Func(tagObject), Bare: true, Childless: true, Here: "it asks the vocabularies and places"},
		"bag":        {Robot: Func(bag), Parameters: []string{"algorithms"}, Check: checks(algorithmsParam), Childless: true, Archives: true, Here: "it writes down what the history has"},
		"deposit":    {Robot: Func(deposit), Parameters: []string{"store"}, Check: checks(storeParam), Seldom: true, Childless: true, Deposits: true},
		"shelve":     {Robot: Func(shelve), Parameters: []string{"target", "match", "puids", "withdraw"}, Check: checks(shelveParams), Bare: true, Childless: true, Here: "it sends to a target"},
		"publish": {Robot: Func(publish), Parameters: []string{"target", "fields", "dc", "withdraw"}, Check: func(with map[string]any) error {
			_, _, err := publishParams(with)
			return err
		}, Bare: true, Childless: true, Here: "it sends to a target"},
		"cleanup": {Robot: Func(cleanup), Parameters: []string{"drop"}, Check: checks(dropParam), Bare: true, Childless: true, Deposits: true},
		"noop":    {Robot: Func(noop), Parameters: []string{"sleep", "fail", "message"}, Check: checks(noopParams), Bare: true, Fileless: true, Childless: true},
		"quality": {Robot: Func(quality), Parameters: []string{"fail"}, Check: checks(failParam), Childless: true, Here: "it asks the rules"},
	}
}

// checks makes how a robot reads its parameters a check of them.
func checks[T any](read func(with map[string]any) (T, error)) func(map[string]any) error {
	return func(with map[string]any) error {
		_, err := read(with)
		return err
	}
}
