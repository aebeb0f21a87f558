package inbox

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
)

// pauseName is the file that pauses taking in: inbox/.pause all of it,
// inbox/COLLECTION/.pause that of a collection. Its first line is the reason.
const pauseName = ".pause"

// Paused says why nothing is taken into a collection for now; empty: it is.
func (b *Box) Paused(c layout.Name) string {
	if why := pausedIn(b.path(layout.InboxDir), layout.InboxDir); why != "" {
		return why
	}
	return pausedIn(b.path(layout.InboxDir, string(c)), layout.InboxDir+"/"+string(c))
}

// pausedIn looks for a pause file in a folder; shown is how that is called. One that
// cannot be read pauses as well.
func pausedIn(dir, shown string) string {
	path := filepath.Join(dir, pauseName)
	if !content.Exists(path) {
		return ""
	}
	text := fmt.Sprintf("paused by %s/%s", shown, pauseName)
	if reason := firstLine(path); reason != "" {
		text += ": " + reason
	}
	return text + "; remove that file to go on"
}

const maxPauseReason = 200

func firstLine(path string) string {
	f, _, err := content.OpenRegular(path, pauseName)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, maxPauseReason)).ReadString('\n')
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(line, "�")))
}
