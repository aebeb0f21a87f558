package steps

import "bagpipe/layout"

// Builtin is a robot that ships with Bagpipe, and the parameters it takes under
// with:.
type Builtin struct {
	Robot      Robot
	Parameters []string
}

// Builtins gives the robots by the name that stands under robot:.
func Builtins() map[layout.Name]Builtin {
	return map[layout.Name]Builtin{
		"unpack":    {Func(unpack), []string{"nested", "names"}},
		"split":     {Func(split), []string{"each", "match", "kind", "collection", "workflow", "lane"}},
		"validate":  {Func(validate), nil},
		"inventory": {Func(inventory), nil},
		"bag":       {Func(bag), []string{"algorithms"}},
		"deposit":   {Func(deposit), []string{"store"}},
		"cleanup":   {Func(cleanup), nil},
		"noop":      {Func(noop), []string{"sleep", "fail", "message"}},
	}
}
