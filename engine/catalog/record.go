package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

const (
	schema     = 1
	folderFile = ".folder.json"
	pageMost   = 4096
)

// treeDir is where the records of a catalog stand.
func treeDir(name layout.Name) string { return layout.CatalogsDir + "/" + string(name) + "/tree" }

// encodeName makes a name fit for JSON.
func encodeName(name string) string {
	out := layout.EncodePath(name)
	if strings.HasPrefix(out, ".") {
		return "%2E" + out[1:]
	}
	return out
}

// folderName makes a name fit for a committed path: of one that Git refuses, as a spelling of .git, its backslashes are
// encoded, too, or else its first character.
func folderName(name string) string {
	out := encodeName(name)
	if gitstore.IsName(out) {
		return out
	}
	if out = strings.ReplaceAll(out, "\\", "%5C"); gitstore.IsName(out) {
		return out
	}
	_, first := utf8.DecodeRuneInString(out)
	coded := ""
	for _, b := range []byte(out[:first]) {
		coded += fmt.Sprintf("%%%02X", b)
	}
	return coded + out[first:]
}

// recordDir is the folder of a record.
func recordDir(catalog layout.Name, path string) string {
	dir := treeDir(catalog)
	if path == "" {
		return dir
	}
	for name := range strings.SplitSeq(path, "/") {
		dir += "/" + folderName(name)
	}
	return dir
}

func pageFile(i int) string { return ".page-" + strconv.Itoa(i) + ".json" }

func pageOf(name string, pages int) int {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32()) & (pages - 1)
}

// files encodes a folder's record: bytes by file name.
func (n *node) files() map[string][]byte {
	n.pages = max(n.pages, 1)
	for len(n.all()) > n.pages*pageMost {
		n.pages *= 2
	}
	head := make([]byte, 0, 256+96*len(n.all()))
	head = append(head, "{\n"...)
	if n.device != "" {
		head = appendMember(head, "device", n.device)
	}
	out := map[string][]byte{}
	if n.pages == 1 {
		head = append(n.appendEntries(head, nil), ",\n"...)
	} else {
		for i := range n.pages {
			in := func(name string) bool { return pageOf(name, n.pages) == i }
			page := n.appendEntries([]byte("{\n"), in)
			out[pageFile(i)] = append(n.appendWaits(append(page, ",\n  \"schema\": 1"...), in), "\n}\n"...)
		}
	}
	head = appendMember(head, "folder", string(appendTime(nil, n.mtime))+" "+strconv.FormatUint(n.inode, 10))
	if n.pages > 1 {
		head = append(strconv.AppendInt(append(head, "  \"pages\": "...), int64(n.pages), 10), ",\n"...)
	}
	head = appendMember(n.appendReplaced(head), "rules", n.rules)
	head = append(head, "  \"schema\": 1,\n"...)
	if head = appendText(append(head, "  \"state\": "...), n.state); n.pages == 1 {
		head = n.appendWaits(head, nil)
	}
	if n.why != "" {
		head = appendText(append(head, ",\n  \"why\": "...), n.why)
	}
	out[folderFile] = append(head, "\n}\n"...)
	return out
}

func appendMember(b []byte, key, value string) []byte {
	b = append(append(append(b, "  \""...), key...), "\": "...)
	return append(appendText(b, value), ",\n"...)
}

// appendText writes a JSON string; most names need no escapes.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			e, _ := json.Marshal(s)
			return append(b, e...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func (n *node) appendEntries(b []byte, only func(string) bool) []byte {
	b = append(b, "  \"entries\": {"...)
	first := true
	line := make([]byte, 0, 160)
	for i := range n.all() {
		e := &n.all()[i]
		if e.replaced || only != nil && !only(e.name) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendText(append(b, "\n    "...), encodeName(e.name))
		if line = e.append(line[:0]); e.verdict == refused || e.verdict == with {
			line = e.appendWhy(line, n.reasons[e.name])
		}
		b = appendText(append(b, ": "...), string(line))
	}
	if !first {
		b = append(b, "\n  "...)
	}
	return append(b, '}')
}

// appendReplaced tells of the entries whose names others have now, if there are any.
func (n *node) appendReplaced(b []byte) []byte {
	of := map[string][]string{}
	for i := range n.all() {
		if e := &n.all()[i]; e.replaced {
			of[encodeName(e.name)] = append(of[encodeName(e.name)], string(e.append(nil)))
		}
	}
	if len(of) == 0 {
		return b
	}
	text, _ := json.MarshalIndent(of, "  ", "  ") // strings alone
	return append(append(append(b, "  \"replaced\": "...), text...), ",\n"...)
}

// appendWaits says why entries wait, if any do.
func (n *node) appendWaits(b []byte, only func(string) bool) []byte {
	some := false
	for i := range n.all() {
		e := &n.all()[i]
		if !e.waits || only != nil && !only(e.name) {
			continue
		}
		if !some {
			b = append(b, ",\n  \"waits\": {"...)
		} else {
			b = append(b, ',')
		}
		some = true
		b = appendText(append(appendText(append(b, "\n    "...), encodeName(e.name)), ": "...), n.reasons[e.name])
	}
	if some {
		b = append(b, "\n  }"...)
	}
	return b
}

func (e *entry) append(b []byte) []byte {
	if e.gone {
		b = append(b, "gone "...)
	}
	b = append(b, kindWords[e.kind]+" "+verdictWords[e.verdict]...)
	if e.kind != folder {
		b = strconv.AppendInt(append(b, ' '), e.size, 10)
		b = appendTime(append(b, ' '), e.mtime)
		if b = append(b, ' '); e.ctime == e.mtime {
			b = append(b, '=')
		} else {
			b = appendTime(b, e.ctime)
		}
	}
	b = strconv.AppendUint(append(b, ' '), e.inode, 10)
	if e.item != "" {
		b = append(append(b, ' '), e.item...)
	}
	return b
}

// appendWhy says why an object is refused, or with which file an entry is one.
func (e *entry) appendWhy(b []byte, why string) []byte {
	if e.item == "" {
		b = append(b, " -"...)
	}
	return append(append(b, ' '), why...)
}

func appendTime(b []byte, ns int64) []byte {
	return time.Unix(0, ns).UTC().AppendFormat(b, time.RFC3339Nano)
}

var errEntry = errors.New("an entry is not as catalogs write it")

// parseEntry reads what append wrote.
func parseEntry(name, text string) (e entry, why string, err error) {
	if e.name, err = layout.DecodePath(name); err != nil {
		return e, "", err
	}
	f := strings.Fields(text)
	if len(f) > 0 && f[0] == "gone" {
		e.gone, f = true, f[1:]
	}
	if len(f) < 3 {
		return e, "", errEntry
	}
	k, v := slices.Index(kindWords[:], f[0]), slices.Index(verdictWords[:], f[1])
	if k < 0 || v < 0 {
		return e, "", errEntry
	}
	e.kind, e.verdict, f = kind(k), verdict(v), f[2:]
	if e.kind != folder {
		if len(f) < 4 {
			return e, "", errEntry
		}
		var errs [3]error
		e.size, errs[0] = strconv.ParseInt(f[0], 10, 64)
		e.mtime, errs[1] = parseTime(f[1])
		if e.ctime = e.mtime; f[2] != "=" {
			e.ctime, errs[2] = parseTime(f[2])
		}
		if err := errors.Join(errs[:]...); err != nil {
			return e, "", err
		}
		f = f[3:]
	}
	if e.inode, err = strconv.ParseUint(f[0], 10, 64); err != nil {
		return e, "", err
	}
	if (e.verdict == refused || e.verdict == with) && len(f) > 1 {
		if why = strings.Join(f[2:], " "); f[1] == "-" {
			return e, why, nil
		}
	}
	if len(f) > 1 {
		e.item, err = layout.ParseItemID(f[1])
	}
	return e, why, err
}

func parseTime(text string) (int64, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	return t.UnixNano(), err
}

// record is .folder.json, or a page of it.
type record struct {
	Device   string              `json:"device"`
	Entries  map[string]string   `json:"entries"`
	Folder   string              `json:"folder"`
	Pages    int                 `json:"pages"`
	Replaced map[string][]string `json:"replaced"`
	Rules    string              `json:"rules"`
	Schema   int                 `json:"schema"`
	State    string              `json:"state"`
	Waits    map[string]string   `json:"waits"`
	Why      string              `json:"why"`
}

// readNode reads the record of a folder; nil where there is none.
func readNode(r gitstore.Reader, catalog layout.Name, path string) (*node, error) {
	dir := recordDir(catalog, path)
	head, err := readRecord(r, dir+"/"+folderFile)
	if err != nil || head == nil {
		return nil, err
	}
	n := &node{path: path, rules: head.Rules, state: head.State, why: head.Why, device: head.Device, pages: max(head.Pages, 1)}
	at, inode, _ := strings.Cut(head.Folder, " ")
	if n.mtime, err = parseTime(at); err == nil {
		n.inode, err = strconv.ParseUint(inode, 10, 64)
	}
	if err != nil || n.pages&(n.pages-1) != 0 || n.pages > 1<<20 {
		return nil, fmt.Errorf("%s/%s: %w", dir, folderFile, errors.Join(errEntry, err))
	}
	parts := []*record{head}
	for i := range n.pages {
		if n.pages == 1 {
			break
		}
		page, err := readRecord(r, dir+"/"+pageFile(i))
		if err != nil {
			return nil, err
		}
		if page != nil {
			maps.DeleteFunc(page.Entries, func(coded, _ string) bool { // of another page, as a push has it
				name, err := layout.DecodePath(coded)
				return err == nil && pageOf(name, n.pages) != i
			})
			parts = append(parts, page)
		}
	}
	for _, p := range parts {
		for name, text := range p.Entries {
			e, why, err := parseEntry(name, text)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", dir, name, err)
			}
			if e.verdict == refused || e.verdict == with {
				n.note(e.name, why)
			}
			n.entries = append(n.entries, e)
		}
	}
	if err := n.readReplaced(head); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	slices.SortFunc(n.entries, inOrder)
	for _, p := range parts {
		for coded, why := range p.Waits {
			if name, err := layout.DecodePath(coded); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", dir, coded, err)
			} else if e := n.find(name); e != nil && e.verdict != with {
				e.waits = true
				n.note(name, why)
			}
		}
	}
	return n, nil
}

// readReplaced reads what appendReplaced wrote.
func (n *node) readReplaced(head *record) error {
	for name, lines := range head.Replaced {
		for _, text := range lines {
			e, _, err := parseEntry(name, text)
			if err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
			e.replace()
			e.lost = false
			n.entries = append(n.entries, e)
		}
	}
	return nil
}

func readRecord(r gitstore.Reader, path string) (*record, error) {
	data, err := r.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rec record
	if err := json.Unmarshal(data, &rec); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if rec.Schema > schema {
		return nil, &layout.SchemaError{File: path, Schema: rec.Schema, Known: schema}
	}
	return &rec, nil
}

// readTree reads all records of a catalog that can be reached from the root; sound is asked for
// one that cannot be read.
func readTree(r gitstore.Reader, catalog layout.Name, sound func(layout.Name, string, error) (*node, error)) (tree, error) {
	t := tree{}
	todo := []string{""}
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n, err := readNode(r, catalog, path)
		if err != nil {
			if n, err = sound(catalog, path, err); err != nil {
				return nil, err
			}
		}
		if n == nil {
			continue
		}
		t[path] = n
		for i := range n.all() {
			if n.all()[i].kind == folder {
				todo = append(todo, join(path, n.all()[i].name))
			}
		}
	}
	return t, nil
}
