package steps

import "bagpipe/layout"

// Builtin is a robot that ships with Bagpipe, and the parameters it takes under
// with:. One that is Bare writes nothing into Call.Scratch, and gets none.
type Builtin struct {
	Robot      Robot
	Parameters []string
	Bare       bool
}

// Builtins gives the robots by the name that stands under robot:.
func Builtins() map[layout.Name]Builtin {
	return map[layout.Name]Builtin{
		"unpack":    {Func(unpack), []string{"nested", "names"}, false},
		"split":     {Func(split), []string{"each", "by", "match", "kind", "collection", "workflow", "lane"}, false},
		"validate":  {Func(validate), nil, false},
		"inventory": {Func(inventory), nil, false},
		"bag":       {Func(bag), []string{"algorithms"}, false},
		"deposit":   {Func(deposit), []string{"store"}, false},
		"cleanup":   {Func(cleanup), nil, true},
		"noop":      {Func(noop), []string{"sleep", "fail", "message"}, true},
	}
}
