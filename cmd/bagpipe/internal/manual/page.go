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
	program.each(func(c *Command) {
		if len(c.Below) > 0 {
			return
		}
		fmt.Fprintf(&b, ".SS %s\n%s\n", word(strings.TrimSpace("bagpipe "+c.Path+" "+c.Args)), roff(c.Help))
		flags(&b, c.Flags)
	})
	b.WriteString(".SH EXIT STATUS\n.nf\n" + roff(codes) + "\n.fi\n")
	b.WriteString(".SH ENVIRONMENT\n.TP\n.B BAGPIPE_WORKSPACE\nThe workspace, where \\-C is not given.\n")
	return b.String()
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
