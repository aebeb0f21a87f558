package recognise

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/antchfx/xmlquery"
	paths "github.com/antchfx/xpath"
	"golang.org/x/net/html/charset"
)

// What is dropped is hostile, XML too. The rules are:
//
//   - a document is read to maxDocument bytes, maxNodes nodes and maxXMLDepth levels,
//     and counted by a stream before it is made a tree;
//   - a document with a DOCTYPE that declares anything is refused: entities are never
//     expanded, and nothing outside is ever fetched;
//   - an XPath may take so many moves in the tree: //a//b//c is short, and slow.

// xpath is an expression that compiles. What evaluates it is made anew each time, as
// the library keeps state in it.
type xpath struct {
	text       string
	namespaces map[string]string
}

func compileXPath(text string, namespaces map[string]string) (*xpath, error) {
	if len(text) > maxPath {
		return nil, fmt.Errorf("the XPath is %d bytes long; at most %d", len(text), maxPath)
	}
	x := &xpath{text, namespaces}
	if _, err := x.compile(); err != nil {
		return nil, fmt.Errorf("expected an XPath such as //title: %w", err)
	}
	return x, nil
}

func (x *xpath) compile() (e *paths.Expr, err error) {
	defer caught(&err) // the library panics at some mistakes
	if len(x.namespaces) == 0 {
		return paths.Compile(x.text)
	}
	return paths.CompileWithNS(x.text, x.namespaces)
}

func caught(err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		*err = p
	default:
		*err = fmt.Errorf("%v", p)
	}
}

// value gives what the first node that is found holds, white space folded; ok is
// false when nothing is found.
func (x *xpath) value(doc *xmlquery.Node) (text string, ok bool, err error) {
	defer caught(&err)
	e, err := x.compile()
	if err != nil {
		return "", false, err
	}
	budget := xpathMoves
	switch v := e.Evaluate(&counted{NodeNavigator: xmlquery.CreateXPathNavigator(doc), left: &budget}).(type) {
	case *paths.NodeIterator:
		if !v.MoveNext() {
			return "", false, nil
		}
		return fold(v.Current().Value()), true, nil
	case string:
		return fold(v), v != "", nil
	case bool:
		return fmt.Sprint(v), v, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), !math.IsNaN(v), nil
	}
	return "", false, nil
}

// fold makes one line of a text.
func fold(text string) string { return strings.Join(strings.Fields(text), " ") }

const xpathMoves = 20_000_000

var errMoves = errors.New("the XPath goes through the document too often; write it without //")

// counted is a cursor that ends what takes too long.
type counted struct {
	paths.NodeNavigator
	left *int
}

func (c *counted) count(n int) {
	if *c.left -= n; *c.left < 0 {
		panic(errMoves)
	}
}

func (c *counted) Copy() paths.NodeNavigator {
	c.count(1)
	return &counted{c.NodeNavigator.Copy(), c.left}
}

func (c *counted) MoveTo(to paths.NodeNavigator) bool {
	c.count(1)
	other, ok := to.(*counted)
	return ok && c.NodeNavigator.MoveTo(other.NodeNavigator)
}

func (c *counted) MoveToParent() bool   { c.count(1); return c.NodeNavigator.MoveToParent() }
func (c *counted) MoveToChild() bool    { c.count(1); return c.NodeNavigator.MoveToChild() }
func (c *counted) MoveToNext() bool     { c.count(1); return c.NodeNavigator.MoveToNext() }
func (c *counted) MoveToPrevious() bool { c.count(1); return c.NodeNavigator.MoveToPrevious() }
func (c *counted) MoveToNextAttribute() bool {
	c.count(1)
	return c.NodeNavigator.MoveToNextAttribute()
}

// Value is what takes longest: the text of everything below.
func (c *counted) Value() string {
	text := c.NodeNavigator.Value()
	c.count(1 + len(text)/16)
	return text
}

// NamespaceURL is asked for by expressions with namespaces.
func (c *counted) NamespaceURL() string {
	if n, ok := c.NodeNavigator.(interface{ NamespaceURL() string }); ok {
		return n.NamespaceURL()
	}
	return ""
}

// parseXML makes a tree of a document that is within bounds.
func parseXML(data []byte) (doc *xmlquery.Node, err error) {
	if err := checkXML(data); err != nil {
		return nil, err
	}
	defer caught(&err)
	if doc, err = xmlquery.Parse(bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("is no XML: %w", err)
	}
	return doc, nil
}

// newDecoder reads XML in any of the usual encodings, and knows no entities but the
// five of XML itself.
func newDecoder(data []byte) *xml.Decoder {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = charset.NewReaderLabel
	return d
}

// checkXML counts a document without keeping it.
func checkXML(data []byte) error {
	d := newDecoder(data)
	depth, nodes := 0, 0
	for {
		t, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return brokenXML(d, err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			depth, nodes = depth+1, nodes+1+len(t.Attr)
		case xml.EndElement:
			depth--
		case xml.Directive:
			if declares(t) {
				return placed(d, "declares entities or a document type of its own; entities are never expanded")
			}
		default:
			nodes++
		}
		if depth > maxXMLDepth {
			return placed(d, fmt.Sprintf("elements in one another more than %d deep", maxXMLDepth))
		}
		if nodes > maxNodes {
			return fmt.Errorf("has more than %d elements and texts", maxNodes)
		}
	}
}

// declares reports whether a DOCTYPE has declarations within it.
func declares(d xml.Directive) bool {
	return bytes.ContainsAny(d, "[") || bytes.HasPrefix(d, []byte("ENTITY"))
}

// placedError is a mistake in XML with its place.
type placedError struct {
	line, column int
	text         string
}

func (e *placedError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.line, e.column, e.text)
}

func placed(d *xml.Decoder, text string) error {
	line, column := d.InputPos()
	return &placedError{line, column, text}
}

// brokenXML words the decoder's error: its place, and that entities are not
// expanded where it met one.
func brokenXML(d *xml.Decoder, err error) error {
	text := err.Error()
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		text = syntax.Msg
	}
	if strings.Contains(text, "character entity") {
		text += "; entities are never expanded"
	}
	return placed(d, "is no XML: "+text)
}
