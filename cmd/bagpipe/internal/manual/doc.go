// Package manual writes what describes the command line beside its help: completion for
// shells, and the manual page.
//
// It owns those texts. It must not know what parses the command line: it is given the
// commands. It has no state.
package manual

// Command is one command, or the program itself.
type Command struct {
	Name  string // the last word of its path; of the program its name
	Path  string // "step retry"; "": the program
	Help  string
	Args  string // as in a synopsis
	Flags []Flag
	Below []Command
}

// Flag is one option of a command.
type Flag struct {
	Name  string // without its dashes
	Short string // one letter; "": none
	Value string // what stands for its value; "": it has none
	Enum  []string
	Help  string
}

// each visits a command and those below it.
func (c *Command) each(visit func(*Command)) {
	visit(c)
	for i := range c.Below {
		c.Below[i].each(visit)
	}
}

// names are those of the commands below.
func (c *Command) names() (names []string) {
	for _, b := range c.Below {
		names = append(names, b.Name)
	}
	return names
}

// options are a command's flags as they are written.
func (c *Command) options() (all []string) {
	for _, f := range c.Flags {
		all = append(all, "--"+f.Name)
		if f.Short != "" {
			all = append(all, "-"+f.Short)
		}
	}
	return all
}
