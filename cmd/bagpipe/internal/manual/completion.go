package manual

import (
	"fmt"
	"strings"
)

// Shells are those that Completion knows.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Completion is a script that completes the program's commands, options and their values;
// file names are the shell's.
func Completion(program Command, shell string) (string, error) {
	switch shell {
	case "bash":
		return bash(program) + "complete -o default -o bashdefault -F _bagpipe bagpipe\n", nil
	case "zsh":
		return "#compdef bagpipe\nautoload -Uz bashcompinit && bashcompinit\n" + bash(program) + "complete -o default -F _bagpipe bagpipe\n", nil
	case "fish":
		return fish(program), nil
	}
	return "", fmt.Errorf("no completion for %q; there is one for %s", shell, strings.Join(Shells(), ", "))
}

// bash is a function that finds the command before the cursor by its words.
func bash(program Command) string {
	var paths, words, values strings.Builder
	program.each(func(c *Command) {
		at := strings.TrimSuffix(" "+c.Path, " ")
		for _, b := range c.Below {
			fmt.Fprintf(&paths, "\t\t%q) path=\"$path $word\" ;;\n", " "+b.Path)
		}
		fmt.Fprintf(&words, "\t%q) commands=%q options=%q ;;\n", at, strings.Join(c.names(), " "), strings.Join(c.options(), " "))
		for _, f := range c.Flags {
			if len(f.Enum) > 0 {
				fmt.Fprintf(&values, "\t%q) COMPREPLY=($(compgen -W %q -- \"$cur\")); COMPREPLY=(\"${COMPREPLY[@]/#/$lead}\"); return ;;\n", at+" --"+f.Name, strings.Join(f.Enum, " "))
			}
		}
	})
	return `_bagpipe() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path="" commands="" options="" lead="" word i
	if [[ $cur == --*=* ]]; then
		lead=${cur%%=*}= prev=${cur%%=*} cur=${cur#*=}
	elif [[ $cur == "=" ]]; then
		cur=""
	elif [[ $prev == "=" ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case "$path $word" in
` + paths.String() + `		esac
	done
	case "$path $prev" in
` + values.String() + `	esac
	case "$path" in
` + words.String() + `	esac
	COMPREPLY=()
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$options" -- "$cur"))
	elif [[ -n $commands ]]; then
		COMPREPLY=($(compgen -W "$commands" -- "$cur"))
	fi
}
`
}

func fish(program Command) string {
	var b strings.Builder
	b.WriteString("function __bagpipe_at\n\tset -l at\n\tfor word in (commandline -opc)[2..]\n\t\tswitch \"$at $word\"\n")
	program.each(func(c *Command) {
		for _, below := range c.Below {
			fmt.Fprintf(&b, "\t\t\tcase %s\n\t\t\t\tset at %s\n", quoted(" "+below.Path), quoted(" "+below.Path))
		}
	})
	b.WriteString("\t\tend\n\tend\n\ttest \"$at\" = \"$argv[1]\"\nend\n")
	program.each(func(c *Command) {
		at := quoted("__bagpipe_at " + quoted(strings.TrimSuffix(" "+c.Path, " ")))
		if len(c.Below) > 0 {
			fmt.Fprintf(&b, "complete -c bagpipe -f -n %s\n", at)
		}
		for _, below := range c.Below {
			fmt.Fprintf(&b, "complete -c bagpipe -n %s -a %s -d %s\n", at, below.Name, quoted(below.Help))
		}
		for _, f := range c.Flags {
			fmt.Fprintf(&b, "complete -c bagpipe -n %s -l %s", at, f.Name)
			if f.Short != "" {
				fmt.Fprintf(&b, " -s %s", f.Short)
			}
			if f.Value != "" {
				b.WriteString(" -r")
			}
			if len(f.Enum) > 0 {
				fmt.Fprintf(&b, " -f -a %s", quoted(strings.Join(f.Enum, " ")))
			}
			fmt.Fprintf(&b, " -d %s\n", quoted(f.Help))
		}
	})
	return b.String()
}

// quoted is a word of fish.
func quoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
