package manual

import (
	"fmt"
	"strings"
)

// Page is the manual page of the program, for man(1).
func Page(program Command, version, codes string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH BAGPIPE 1 \"\" %s \"Bagpipe manual\"\n.SH NAME\nbagpipe \\- a batch engine for archives, on the file system and Git\n", word(version))
	b.WriteString(".SH SYNOPSIS\n.B bagpipe\n.I COMMAND\n.RI [ OPTION ...]\n.SH DESCRIPTION\n" + roff(program.Help) + "\n")
	b.WriteString(".SH OPTIONS\nOf every command:\n")
	flags(&b, program.Flags)
	b.WriteString(".SH COMMANDS\n")
	commands(&b, program)
	b.WriteString(".SH EXIT STATUS\n.nf\n" + roff(codes) + "\n.fi\n")
	b.WriteString(".SH ENVIRONMENT\n.TP\n.B BAGPIPE_WORKSPACE\nThe workspace, where \\-C is not given.\n")
	return b.String()
}

// Pages are the pages of the program and of each of its commands with those below it, by the names of their files.
func Pages(program Command, version, codes string) map[string]string {
	all := map[string]string{"bagpipe.1": Page(program, version, codes)}
	for _, c := range program.Below {
		var b strings.Builder
		name := "bagpipe-" + c.Name
		brief, _, _ := strings.Cut(c.Help, "\n")
		fmt.Fprintf(&b, ".TH %s 1 \"\" %s \"Bagpipe manual\"\n.SH NAME\n%s \\- %s\n", word(strings.ToUpper(name)), word(version), roff(name), roff(brief))
		fmt.Fprintf(&b, ".SH SYNOPSIS\n.B bagpipe %s\n", roff(c.Name))
		if len(c.Below) > 0 {
			fmt.Fprintf(&b, ".I COMMAND\n.RI [ OPTION ...]\n.SH DESCRIPTION\n%s\n.SH COMMANDS\n", roff(c.Help))
			commands(&b, c)
		} else {
			fmt.Fprintf(&b, "%s\n.RI [ OPTION ...]\n.SH DESCRIPTION\n%s\n", roff(c.Args), roff(c.Help))
			if len(c.Flags) > 0 {
				b.WriteString(".SH OPTIONS\n")
			}
			flags(&b, c.Flags)
		}
		b.WriteString(".SH SEE ALSO\n.BR bagpipe (1),\nwhich has the options of every command and the exit status.\n")
		all[name+".1"] = b.String()
	}
	return all
}

// commands are those below one that have none below them.
func commands(b *strings.Builder, of Command) {
	of.each(func(c *Command) {
		if len(c.Below) > 0 {
			return
		}
		fmt.Fprintf(b, ".SS %s\n%s\n", word(strings.TrimSpace("bagpipe "+c.Path+" "+c.Args)), roff(c.Help))
		flags(b, c.Flags)
	})
}

func flags(b *strings.Builder, all []Flag) {
	for _, f := range all {
		name := "--" + f.Name
		if f.Short != "" {
			name = "-" + f.Short + ", " + name
		}
		if f.Value != "" {
			name += "=" + f.Value
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", strings.ReplaceAll(roff(name), " ", "\\ "), roff(f.Help))
	}
}

// roff is a text in which nothing is a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

// word is a text as one argument of a request.
func word(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
