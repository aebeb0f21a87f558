package feed

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// record is what is held of a post: where its body and its texts stand, and whose feeds have it.
type record struct {
	seq      int
	date     int64 // of the commit, seconds since 1970
	made     int64 // when its entries were, milliseconds since 1970; 0: it has none
	body     span
	text     span // of its part
	audience int
	part     int
	unlisted bool // it is in feeds alone
	failed   bool // there is no template for it
	placed   bool // where its body stands is known
}

// part is the posts of some posters, and how far they have entries.
type part struct {
	frames
	through int
}

// shelf is what the files of one folder have.
type shelf struct {
	dir       string
	audiences frames
	posts     frames
	parts     [parts]part
	names     []string // of feeds
	sets      [][]int  // audiences: numbers of names
	numbers   map[string]int
	known     map[string]int // the number of an audience, by its names
	written   [2]int         // how many names and sets are in the file
	records   []record       // by sequence
	through   string         // the commit
	next      int            // the number of the next post
	pending   []Pending
}

func newShelf(dir string) *shelf {
	s := &shelf{dir: dir, next: 1, numbers: map[string]int{}, known: map[string]int{}}
	s.audiences.path, s.posts.path = s.file("audiences"), s.file("posts")
	for n := range s.parts {
		s.parts[n].path = s.file(fmt.Sprintf("part-%02d", n))
	}
	return s
}

func (s *shelf) file(name string) string { return filepath.Join(s.dir, name) }
func (s *shelf) bodies() string          { return s.file("bodies") }
func (s *shelf) texts(part int) string   { return s.file(fmt.Sprintf("text-%02d", part)) }

// turn is the highest that wrote here.
func (s *shelf) turn() int {
	turn := max(s.audiences.turn, s.posts.turn)
	for n := range s.parts {
		turn = max(turn, s.parts[n].turn)
	}
	return turn
}

// load reads what other processes added.
func (s *shelf) load() error {
	err := errors.Join(s.audiences.read(s.readAudiences), s.posts.read(s.readPosts))
	for n := range s.parts {
		err = errors.Join(err, s.parts[n].read(func(d *decoder) { s.readPart(n, d) }))
		if s.parts[n].through >= s.next { // of posts that are not there: the machine crashed
			err = errors.Join(err, fmt.Errorf("%s: %w", s.parts[n].path, errDamaged))
		}
	}
	return err
}

// audienceLists is what comes to the lists of names and audiences.
type audienceLists struct {
	Names []string `json:"names"`
	Sets  [][]int  `json:"sets"`
}

func (s *shelf) readAudiences(d *decoder) {
	names, sets := d.number(), d.number()
	var l audienceLists
	if json.Unmarshal(d.rest, &l) != nil || names > len(s.names) || sets > len(s.sets) {
		d.bad = true
		return
	}
	s.names, s.sets = append(s.names[:names], l.Names...), append(s.sets[:sets], l.Sets...)
	s.written = [2]int{len(s.names), len(s.sets)}
	clear(s.numbers)
	for n, name := range s.names {
		s.numbers[name] = n
	}
	clear(s.known)
	for n, set := range s.sets {
		for _, name := range set {
			if name < 0 || name >= len(s.names) {
				d.bad = true
				return
			}
		}
		s.known[key(set)] = n
	}
}

// key is a set as a map's key.
func key(set []int) string {
	b := make([]byte, 0, 2*len(set))
	for _, n := range set {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return string(b)
}

// audience gives the number of those feeds together.
func (s *shelf) audience(feeds []string) int {
	set := make([]int, len(feeds))
	for i, name := range feeds {
		n, is := s.numbers[name]
		if !is {
			n = len(s.names)
			s.names, s.numbers[name] = append(s.names, name), n
		}
		set[i] = n
	}
	k := key(set)
	n, is := s.known[k]
	if !is {
		n = len(s.sets)
		s.sets, s.known[k] = append(s.sets, set), n
	}
	return n
}

// writeAudiences writes those that came; a crash right after leaves some that no post has.
func (s *shelf) writeAudiences(turn int) error {
	names, sets := s.written[0], s.written[1]
	if sets == len(s.sets) {
		return nil
	}
	data, err := json.Marshal(audienceLists{s.names[names:], s.sets[sets:]})
	if err != nil {
		return err
	}
	b := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(turn)), uint64(names)), uint64(sets))
	if err := s.audiences.add(append(b, data...)); err != nil {
		return err
	}
	s.written = [2]int{len(s.names), len(s.sets)}
	return nil
}

// feeds names the feeds of an audience.
func (s *shelf) feeds(audience int) []string {
	var names []string
	for _, n := range s.sets[audience] {
		names = append(names, s.names[n])
	}
	return names
}

// listing is posts that come to the list, and how far it then goes. The bodies of each follow
// those of the one before.
type listing struct {
	through string
	next    int
	pending []Pending
	records []record
}

// list writes posts, whose bodies are on the disk.
func (s *shelf) list(turn int, l listing) error {
	if err := s.writeAudiences(turn); err != nil {
		return err
	}
	pending, err := json.Marshal(l.pending)
	if err != nil {
		return err
	}
	b := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(turn)), uint64(s.next))
	b = appendText(appendText(binary.AppendUvarint(b, uint64(l.next)), l.through), pending)
	b = binary.AppendUvarint(b, uint64(len(l.records)))
	var last record
	for i := range l.records {
		r := &l.records[i]
		part := r.part
		if r.unlisted {
			part += parts
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.seq-last.seq)), uint64(part))
		b = binary.AppendUvarint(binary.AppendVarint(b, r.date-last.date), uint64(r.audience))
		b = binary.AppendUvarint(binary.AppendVarint(b, r.body.at-last.body.at-int64(last.body.size)), uint64(r.body.size))
		last = *r
	}
	if err := s.posts.add(b); err != nil {
		return err
	}
	s.through, s.next, s.pending, s.records = l.through, l.next, l.pending, append(s.records, l.records...)
	return nil
}

func (s *shelf) readPosts(d *decoder) {
	from, next := d.number(), d.number()
	through, pending := string(d.text()), d.text()
	n := d.number()
	if from > next || n < 0 || n > len(d.rest) || json.Unmarshal(pending, &s.pending) != nil {
		d.bad = true
		return
	}
	s.records = slices.DeleteFunc(s.records, func(r record) bool { return r.seq >= from })
	s.records = slices.Grow(s.records, n)
	var last record
	for range n {
		r := record{seq: last.seq + d.number(), part: d.number()}
		if r.unlisted = r.part >= parts; r.unlisted {
			r.part -= parts
		}
		r.date, r.audience = last.date+d.signed(), d.number()
		r.body = span{last.body.at + int64(last.body.size) + d.signed(), d.number()}
		if d.bad || r.part < 0 || r.part >= parts || r.audience < 0 || r.audience >= len(s.sets) || r.seq <= last.seq {
			d.bad = true
			return
		}
		s.records, last = append(s.records, r), r
	}
	s.through, s.next = through, next
}

// find gives the place of a post in records; -1: it is not there.
func (s *shelf) find(seq int) int {
	if len(s.records) == 0 {
		return -1
	}
	if n := seq - s.records[0].seq; n >= 0 && n < len(s.records) && s.records[n].seq == seq {
		return n
	}
	n, is := slices.BinarySearchFunc(s.records, seq, func(r record, seq int) int { return r.seq - seq })
	if !is {
		return -1
	}
	return n
}

// enter writes the entries of some posts of one part, whose texts are on the disk, and how far
// the part then goes.
func (s *shelf) enter(n, turn, through int, made time.Time, posts []int) error {
	p := &s.parts[n]
	b := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(turn)), uint64(p.through))
	b = binary.AppendVarint(binary.AppendUvarint(b, uint64(through)), made.UnixMilli())
	var base int64
	if len(posts) > 0 {
		base = s.records[posts[0]].text.at
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(base)), uint64(len(posts)))
	last := 0
	for _, i := range posts {
		r := &s.records[i]
		size := 2 * r.text.size
		if r.failed {
			size++
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.seq-last)), uint64(size))
		last = r.seq
	}
	if err := p.add(b); err != nil {
		return err
	}
	for _, i := range posts {
		s.records[i].made = made.UnixMilli()
	}
	p.through = through
	return nil
}

func (s *shelf) readPart(n int, d *decoder) {
	from, through, made, at, count := d.number(), d.number(), d.signed(), int64(d.number()), d.number()
	p := &s.parts[n]
	if from < p.through { // frames of whoever had lost the lock
		for i := range s.records {
			if r := &s.records[i]; r.part == n && r.seq > from {
				r.made, r.failed = 0, false
			}
		}
	}
	seq := 0
	for range count {
		seq += d.number()
		size := d.number()
		i := s.find(seq)
		if d.bad || i < 0 || s.records[i].part != n {
			d.bad = true
			return
		}
		r := &s.records[i]
		r.made, r.text, r.failed = made, span{at, size / 2}, size&1 == 1
		at += int64(size / 2)
	}
	p.through = through
}

// waits reports whether a post is still to get its entries, as where most: lets few be made.
func (s *shelf) waits(r *record) bool { return r.seq > s.parts[r.part].through }

// sizes counts the entries of each feed that has some.
func (s *shelf) sizes() map[string]int {
	each, n := make([]int, len(s.sets)), map[string]int{}
	for i := range s.records {
		if r := &s.records[i]; r.made != 0 && !r.failed {
			each[r.audience]++
		}
	}
	for a, count := range each {
		for _, name := range s.sets[a] {
			if count > 0 {
				n[s.names[name]] += count
			}
		}
	}
	return n
}
