package ocflcodes

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// object is a JSON object with its members in their order, also those that are there twice.
type object []member

type member struct {
	name  string
	value any // object, []any, string, json.Number, bool or nil
}

// get gives a member; of several the first.
func (o object) get(name string) (value any, is bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

func decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

func decodeValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		all := object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			all = append(all, member{name.(string), value}) // names are strings
		}
		_, err = d.Token()
		return all, err
	case json.Delim('['):
		all := []any{}
		for d.More() {
			value, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			all = append(all, value)
		}
		_, err = d.Token()
		return all, err
	}
	return t, nil
}

// Inventory judges an inventory of an object that declares a version of OCFL, 1.0 or 1.1.
func Inventory(data []byte, spec string) []Fault {
	v, err := decode(data)
	top, is := v.(object)
	if err != nil || !is {
		return []Fault{{"E033", "the inventory is no JSON object"}}
	}
	i := inventory{top: top, spec: spec}
	i.judge()
	return i.faults
}

type inventory struct {
	faults
	top      object
	spec     string
	manifest object // nil where it is none
	versions object
}

var keys = []string{"id", "type", "digestAlgorithm", "head", "contentDirectory", "manifest", "versions", "fixity"}

func (i *inventory) judge() {
	for _, m := range i.top {
		if !slices.Contains(keys, m.name) {
			i.add("E102", fmt.Sprintf("the key %q is not specified", m.name))
		}
	}
	for _, key := range keys[:4] {
		value, there := i.top.get(key)
		text, isText := value.(string)
		switch {
		case !there, isText && text == "":
			i.add("E036", key+" is missing")
		case !isText && key == "head":
			i.add("E040", "head is no text")
		case !isText:
			i.add("E036", key+" is no text")
		case key == "type" && text != "https://ocfl.io/"+i.spec+"/spec/#inventory":
			i.add("E038", fmt.Sprintf("type is %q in an object of OCFL %s", text, i.spec))
		case key == "digestAlgorithm" && text != "sha512" && text != "sha256":
			i.add("E025", fmt.Sprintf("digestAlgorithm is %q", text))
		}
	}
	i.contentDirectory()
	i.readVersions()
	i.readManifest()
	for _, v := range i.versions {
		i.version(v)
	}
	i.unused()
	i.fixity()
}

func (i *inventory) contentDirectory() {
	value, there := i.top.get("contentDirectory")
	name, isText := value.(string)
	switch {
	case !there:
	case !isText || name == "":
		i.add("E108", "contentDirectory is no folder's name")
	case strings.Contains(name, "/"):
		i.add("E017", "contentDirectory holds a slash")
		i.add("E108", "contentDirectory is no folder in the version's")
	case name == "." || name == "..":
		i.add("E018", "contentDirectory is "+name)
		i.add("E108", "contentDirectory is no folder in the version's")
	}
}

func (i *inventory) contentDir() string {
	if name, _ := i.top.get("contentDirectory"); name != nil {
		if text, is := name.(string); is {
			return text
		}
	}
	return "content"
}

var versionName = regexp.MustCompile(`^v(0*)([1-9][0-9]*)$`)

// readVersions judges the names of the versions.
func (i *inventory) readVersions() {
	value, there := i.top.get("versions")
	all, is := value.(object)
	switch {
	case !there:
		i.add("E043", "versions is missing")
		i.add("E041", "versions is missing")
		return
	case !is:
		i.add("E044", "versions is no JSON object")
		i.add("E045", "versions is no JSON object")
		return
	case len(all) == 0:
		i.add("E008", "there is no version")
	}
	i.versions = all
	var names []string
	for _, m := range all {
		names = append(names, m.name)
	}
	i.sequence(names)
	head, _ := i.top.get("head")
	text, isText := head.(string)
	if isText && text != "" && len(names) > 0 && number(text) != len(slices.Compact(slices.Sorted(slices.Values(names)))) {
		i.add("E040", fmt.Sprintf("head is %q, and there are %d versions", text, len(names)))
	} else if _, is := all.get(text); isText && text != "" && !is {
		i.add("E040", fmt.Sprintf("head is %q, which is no version", text))
	}
	if isText && text != "" && !versionName.MatchString(text) {
		i.add("E104", fmt.Sprintf("head is %q", text))
	}
}

// number is that of a version; 0: it is none.
func number(name string) int {
	m := versionName.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[2])
	if err != nil {
		return 0
	}
	return n
}

// sequence judges the names of versions, in inventories or on the disk.
func (f *faults) sequence(names []string) {
	widths, there := map[int]bool{}, map[int]bool{}
	padded := false
	for _, name := range names {
		m := versionName.FindStringSubmatch(name)
		if m == nil {
			f.add("E046", fmt.Sprintf("%q is no version's name", name))
			if strings.HasPrefix(name, "v") {
				f.add("E105", fmt.Sprintf("%q has no number from 1 up", name))
			} else {
				f.add("E104", fmt.Sprintf("%q does not begin with v", name))
			}
			continue
		}
		there[number(name)] = true
		if m[1] != "" {
			padded, widths[len(name)] = true, true
		}
	}
	if padded {
		for _, name := range names {
			switch m := versionName.FindStringSubmatch(name); {
			case m == nil || m[1] != "":
			case widths[len(name)]: // v10 beside v01 to v09
				f.add("E011", fmt.Sprintf("%q begins with no zero, as the padded versions beside it do", name))
				f.add("E013", fmt.Sprintf("%q is not called as the versions before", name))
			default:
				widths[len(name)] = true
				f.add("E013", fmt.Sprintf("%q is not called as the versions before", name))
			}
		}
	}
	if len(widths) > 1 {
		f.add("E012", "versions are padded in different ways")
	}
	for n := 1; n <= len(there); n++ {
		if !there[n] && n == 1 {
			f.add("E009", "there is no version 1")
			f.add("E010", "there is no version 1")
		} else if !there[n] {
			f.add("E010", fmt.Sprintf("there is no version %d", n))
		}
	}
}

// readManifest judges digests and content paths.
func (i *inventory) readManifest() {
	value, there := i.top.get("manifest")
	all, is := value.(object)
	switch {
	case !there:
		i.add("E041", "manifest is missing")
		return
	case !is:
		i.add("E106", "the manifest is no JSON object")
		return
	}
	i.manifest = all
	value, _ = i.top.get("digestAlgorithm")
	algorithm, _ := value.(string)
	length := map[string]int{"sha512": 128, "sha256": 64}[algorithm]
	for _, m := range all {
		if _, err := hex.DecodeString(m.name); err != nil {
			i.add(cmp.Or(map[string]string{"sha512": "E031", "sha256": "E030"}[algorithm], "E025"), fmt.Sprintf("%q in the manifest is no hexadecimal digest", m.name))
		} else if length > 0 && len(m.name) != length {
			i.add("E039", fmt.Sprintf("%q in the manifest is no digest of %s", m.name, algorithm))
		}
	}
	i.paths(all, "the manifest", "E092", "E096", i.content)
}

// content judges a content path.
func (i *inventory) content(name string) {
	parts := strings.Split(name, "/")
	if len(parts) == 1 && strings.Contains(name, `\`) {
		i.add("E035", fmt.Sprintf("the content path %q has no slash between its elements", name))
		i.add("E098", fmt.Sprintf("the content path %q is one element", name))
	}
	if strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") {
		i.add("E100", fmt.Sprintf("the content path %q begins or ends with a slash", name))
	}
	if slices.ContainsFunc(parts, func(p string) bool { return p == "" || p == "." || p == ".." }) {
		i.add("E099", fmt.Sprintf("the content path %q has an element that is none", name))
		if strings.HasPrefix(name, "/") || parts[0] == ".." {
			i.add("E042", fmt.Sprintf("the content path %q is not relative to the object", name))
		}
		return
	}
	if _, is := i.versions.get(parts[0]); !is && i.versions != nil {
		i.add("E014", fmt.Sprintf("the content path %q is in no version's folder", name))
		i.add("E042", fmt.Sprintf("the content path %q is in no version's folder", name))
	} else if len(parts) < 3 || parts[1] != i.contentDir() {
		i.add("E021", fmt.Sprintf("the content path %q is not in %s", name, i.contentDir()))
	}
}

// paths judges what maps digests to paths.
func (i *inventory) paths(all object, where, badValue, twice string, each func(string)) {
	digests, seen := map[string]bool{}, map[string]bool{}
	var names []string
	for _, m := range all {
		if digests[strings.ToLower(m.name)] {
			i.add(twice, fmt.Sprintf("%s has the digest %s twice", where, m.name))
		}
		digests[strings.ToLower(m.name)] = true
		list, is := m.value.([]any)
		if !is {
			i.add(badValue, fmt.Sprintf("%s has no list of paths for %s", where, m.name))
			continue
		}
		for _, value := range list {
			name, is := value.(string)
			if !is {
				i.add(badValue, fmt.Sprintf("%s has a path that is no text for %s", where, m.name))
				continue
			}
			each(name)
			if seen[name] {
				i.conflict(where, name)
			}
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, name := range names {
		for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
			if seen[name[:at]] {
				i.conflict(where, name[:at])
				break
			}
		}
	}
}

// conflict is a path that is there twice, or a file and a folder.
func (i *inventory) conflict(where, name string) {
	code := "E101"
	if strings.HasPrefix(where, "version") {
		code = "E095"
	}
	i.add(code, fmt.Sprintf("%s has the path %q twice, or as a folder, too", where, name))
}

func (i *inventory) version(m member) {
	where := "version " + m.name
	v, is := m.value.(object)
	if !is {
		i.add("E047", where+" is no JSON object")
		return
	}
	for _, k := range v {
		if !slices.Contains([]string{"created", "state", "message", "user"}, k.name) {
			i.add("E102", fmt.Sprintf("%s has the key %q, which is not specified", where, k.name))
		}
	}
	created, there := v.get("created")
	if text, isText := created.(string); !there {
		i.add("E048", where+" has no created")
	} else if _, err := time.Parse(time.RFC3339, text); !isText || err != nil {
		i.add("E049", where+": created is no time of RFC 3339")
	}
	if message, there := v.get("message"); there {
		if _, isText := message.(string); !isText {
			i.add("E094", where+": message is no text")
		}
	}
	if user, there := v.get("user"); there {
		who, isObject := user.(object)
		name, _ := who.get("name")
		if text, _ := name.(string); !isObject || text == "" {
			i.add("E054", where+": user has no name")
		}
	}
	value, there := v.get("state")
	state, isObject := value.(object)
	switch {
	case !there:
		i.add("E048", where+" has no state")
	case !isObject:
		i.add("E050", where+": state is no JSON object")
	default:
		i.state(where, state)
	}
}

func (i *inventory) state(where string, state object) {
	if i.manifest != nil {
		known := map[string]bool{}
		for _, m := range i.manifest {
			known[m.name] = true
		}
		for _, m := range state {
			if !known[m.name] {
				i.add("E050", fmt.Sprintf("%s has a digest that the manifest has not: %s", where, m.name))
			}
		}
	}
	i.paths(state, where, "E051", "E050", func(name string) {
		if strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") {
			i.add("E053", fmt.Sprintf("%s: the logical path %q begins or ends with a slash", where, name))
		}
		if slices.ContainsFunc(strings.Split(name, "/"), func(p string) bool { return p == "" || p == "." || p == ".." }) {
			i.add("E052", fmt.Sprintf("%s: the logical path %q has an element that is none", where, name))
		}
	})
}

// unused finds digests of the manifest that are in no state.
func (i *inventory) unused() {
	used := map[string]bool{}
	for _, v := range i.versions {
		version, _ := v.value.(object)
		value, _ := version.get("state")
		state, _ := value.(object)
		for _, m := range state {
			used[strings.ToLower(m.name)] = true
		}
	}
	for _, m := range i.manifest {
		if !used[strings.ToLower(m.name)] && i.spec != "1.0" {
			i.add("E107", "the manifest has a digest that no version has: "+m.name)
		}
	}
}

// fixity judges the block of further digests.
func (i *inventory) fixity() {
	value, there := i.top.get("fixity")
	all, is := value.(object)
	if !there {
		return
	}
	if !is {
		i.add("E111", "fixity is no JSON object")
		return
	}
	for _, m := range all {
		block, is := m.value.(object)
		if !is {
			i.add("E057", "fixity: "+m.name+" is no JSON object")
			continue
		}
		if code := map[string]string{"sha1": "E029", "sha256": "E030", "sha512": "E031", "blake2b-512": "E032"}[m.name]; code != "" {
			for _, d := range block {
				if _, err := hex.DecodeString(d.name); err != nil {
					i.add(code, fmt.Sprintf("fixity: %q is no hexadecimal digest", d.name))
				}
			}
		}
		i.paths(block, "fixity: "+m.name, "E057", "E097", func(name string) {
			if strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") {
				i.add("E100", fmt.Sprintf("fixity: the content path %q begins or ends with a slash", name))
			}
			if slices.ContainsFunc(strings.Split(name, "/"), func(p string) bool { return p == "" || p == "." || p == ".." }) {
				i.add("E099", fmt.Sprintf("fixity: the content path %q has an element that is none", name))
			}
		})
	}
}
