package ledger

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

const MaxLabel = 500

// Trailer is one line of a commit's last block.
type Trailer [2]string

// Message words a commit: a subject, foreign text indented so that it can pass
// neither for a subject nor for a trailer, and the trailers.
func Message(subject, text string, trailers []Trailer) string {
	var b strings.Builder
	b.Grow(1 << 10) // seldom more
	b.WriteString(OneLine(subject, 240))
	b.WriteString("\n\n")
	if text = strings.TrimSpace(text); text != "" {
		for line := range strings.Lines(Clip(text, MaxMessage)) {
			if line = OneLine(line, 1000); line != "" {
				line = "    " + line
			}
			b.WriteString(line + "\n")
		}
		b.WriteString("\n")
	}
	for _, t := range trailers {
		if key, value := t[0], t[1]; value != "" {
			b.WriteString(key)
			b.WriteString(": ")
			b.WriteString(OneLine(value, 300))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// MaxMessage bounds what a robot's message may add to the record and the commit;
// the whole of it stands in the log.
const MaxMessage = 4000

// OneLine replaces control characters and line separators, and clips.
func OneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return Clip(strings.TrimSpace(s), most)
}

// Printable makes foreign text fit for records and terminals: control characters
// but line ends and tabs become %XX, as in foreign names.
func Printable(s string) string {
	if !strings.ContainsFunc(s, isHidden) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if isHidden(r) {
			b.WriteString(layout.EncodePath(string(r)))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isHidden(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// Clip shortens s to at most most bytes at a rune's boundary.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// siteTrailer names the site in every commit.
func siteTrailer(site state.Site) string {
	if site.Name == "" {
		return ""
	}
	return "Bagpipe-Site: " + string(site.Name) + "\n"
}

// StepMessage words a transition of a step.
func StepMessage(id layout.ItemID, m layout.Manifest, tr state.Transition, text, agent string, more ...Trailer) string {
	subject := string(tr.Step) + ": " + string(tr.To) + " " + string(id) + " (" + string(m.Collection) + "/" + Clip(m.Label, 100) + ")"
	attempt := ""
	if !tr.Attempt.IsZero() {
		attempt = tr.Attempt.String()
	}
	children := ""
	if tr.Children > 0 {
		children = strconv.Itoa(tr.Children)
	}
	return Message(subject, text, append([]Trailer{
		{"Bagpipe-Item", string(id)},
		{"Bagpipe-Workflow", tr.Workflow},
		{"Bagpipe-Step", string(tr.Step)},
		{"Bagpipe-From", string(tr.From)},
		{"Bagpipe-To", string(tr.To)},
		{"Bagpipe-Attempt", attempt},
		{"Bagpipe-Children", children},
		{"Bagpipe-Agent", agent},
	}, more...))
}

// IntentMessage words a hold or a release.
func IntentMessage(id layout.ItemID, m layout.Manifest, kind, to, text, agent string) string {
	subject := kind + ": " + to + " " + string(id) + " (" + string(m.Collection) + "/" + Clip(m.Label, 100) + ")"
	return Message(subject, text, []Trailer{
		{"Bagpipe-Item", string(id)},
		{"Bagpipe-Intent", kind},
		{"Bagpipe-Agent", agent},
	})
}

// FlowMessage words what became of a whole workflow of an item.
func FlowMessage(id layout.ItemID, m layout.Manifest, intent string, tr state.Transition, text, agent string, more ...Trailer) string {
	done := map[string]string{state.MigrateIntent: "moved", state.ActivateIntent: "activated", state.DeactivateIntent: "deactivated"}[intent]
	subject := tr.Workflow + ": " + done + " " + string(id) + " (" + string(m.Collection) + "/" + Clip(m.Label, 100) + ")"
	return Message(subject, text, append([]Trailer{
		{"Bagpipe-Item", string(id)},
		{"Bagpipe-Workflow", tr.Workflow},
		{"Bagpipe-Intent", intent},
		{"Bagpipe-From", string(tr.From)},
		{"Bagpipe-To", string(tr.To)},
		{"Bagpipe-Agent", agent},
	}, more...))
}
