package workdo

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"strings"
)

// node is one element. Elements without content are closed in place, as the seed's are.
type node struct {
	name  string
	attrs []string // names and values in turn; an attribute whose value is \x00 is left out
	text  string
	kids  []node
}

// left is the value of an attribute that is left out.
const left = "\x00"

func (n node) write(b *bytes.Buffer, depth int) {
	indent := strings.Repeat("  ", depth)
	b.WriteString(indent + "<" + n.name)
	for i := 0; i+1 < len(n.attrs); i += 2 {
		if n.attrs[i+1] == left {
			continue
		}
		b.WriteString(" " + n.attrs[i] + `="`)
		_ = xml.EscapeText(b, []byte(n.attrs[i+1])) // memory takes all
		b.WriteByte('"')
	}
	switch {
	case n.text != "":
		b.WriteByte('>')
		_ = xml.EscapeText(b, []byte(n.text))
		b.WriteString("</" + n.name + ">\n")
	case len(n.kids) == 0:
		b.WriteString("/>\n")
	default:
		b.WriteString(">\n")
		for _, k := range n.kids {
			k.write(b, depth+1)
		}
		b.WriteString(indent + "</" + n.name + ">\n")
	}
}

func send(w http.ResponseWriter, status int, n node) {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	n.write(&b, 0)
	w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // who asked is gone
}
