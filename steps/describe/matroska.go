package describe

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// The elements of Matroska and WebM that are read (RFC 9559).
const (
	ebmlHead, ebmlDocType                                   = 0x1a45dfa3, 0x4282
	mkvSegment, mkvCluster                                  = 0x18538067, 0x1f43b675
	mkvSeekHead, mkvSeek, mkvSeekID, mkvSeekPosition        = 0x114d9b74, 0x4dbb, 0x53ab, 0x53ac
	mkvInfo, mkvScale, mkvDuration, mkvDate, mkvTitle       = 0x1549a966, 0x2ad7b1, 0x4489, 0x4461, 0x7ba9
	mkvWritingApp                                           = 0x5741
	mkvTracks, mkvTrack, mkvTrackType, mkvCodec             = 0x1654ae6b, 0xae, 0x83, 0x86
	mkvVideo, mkvWidth, mkvHeight                           = 0xe0, 0xb0, 0xba
	mkvAudio, mkvRate, mkvChannels, mkvBits                 = 0xe1, 0xb5, 0x9f, 0x6264
	mkvTags, mkvTag, mkvTargets, mkvTrackUID                = 0x1254c367, 0x7373, 0x63c0, 0x63c5
	mkvSimpleTag, mkvTagName, mkvTagText                    = 0x67c8, 0x45a3, 0x4487
	maxElements                                             = 10000
	maxElementRead                                    int64 = 64 << 10
)

// mkvCodecs are the codecs' usual names; others have Matroska's.
var mkvCodecs = map[string]string{"V_VP8": "VP8", "V_VP9": "VP9", "V_AV1": "AV1", "V_MPEG4/ISO/AVC": "H.264", "V_MPEGH/ISO/HEVC": "H.265", "V_FFV1": "FFV1", "V_MPEG2": "MPEG-2",
	"A_OPUS": "Opus", "A_VORBIS": "Vorbis", "A_FLAC": "FLAC", "A_AAC": "AAC", "A_AC3": "AC-3", "A_MPEG/L3": "MP3", "A_PCM/INT/LIT": "PCM", "A_PCM/INT/BIG": "PCM", "A_PCM/FLOAT/IEEE": "PCM float"}

var mkvBusiness = map[string]string{"TITLE": "title", "ARTIST": "creator", "ALBUM": "album", "COMPOSER": "composer", "GENRE": "genre", "DESCRIPTION": "description", "COMMENT": "description", "SUBJECT": "subject", "COPYRIGHT": "rights"}

// element is one element of EBML (RFC 8794): its number, its content's first byte and where it ends.
type element struct {
	id      uint32
	at, end int64
}

// matroska reads a file's headers and tags. What comes after the first cluster is found by the seek head, so that sound and pictures
// are never walked through; at-wat/ebml-go would read all of a film to its tags at the end, and names no byte.
type matroska struct {
	io.ReaderAt
	facts *Facts
	count int
	seeks map[uint32]int64 // where the segment's parts are, by their number
	track track
	scale uint64
	// ticks is the length, in units of scale nanoseconds.
	ticks float64
	dates map[string]string // by the tag that says them
}

type track struct {
	kind           uint64 // 1 is video, 2 audio
	codec          string
	width, height  uint64
	rate           float64
	channels, bits uint64
}

func readMatroska(f io.ReaderAt, size int64, facts *Facts) error {
	m := &matroska{ReaderAt: f, facts: facts, seeks: map[uint32]int64{}, scale: 1e6, dates: map[string]string{}}
	head, err := m.element(0, size)
	if err != nil || head.id != ebmlHead {
		return fmt.Errorf("MKV: at byte 0: no EBML")
	}
	if err := m.each(head, func(e element) (bool, error) {
		if e.id != ebmlDocType {
			return true, nil
		}
		text, err := m.text(e)
		if strings.EqualFold(text, "webm") {
			facts.Entity["format"] = "WebM"
		}
		return true, err
	}); err != nil {
		return err
	}
	segment, err := m.element(head.end, size)
	if err != nil {
		return err
	}
	if segment.id != mkvSegment {
		return fmt.Errorf("MKV: at byte %d: no segment", head.end)
	}
	if err := m.segment(segment); err != nil {
		return err
	}
	saySeconds(facts.Entity, m.ticks*float64(m.scale)/1e9)
	facts.setFirst([]string{m.dates["DATE_RECORDED"], m.dates["DATE"], m.dates["DATE_RELEASED"]}, "")
	return nil
}

func (m *matroska) segment(segment element) error {
	read := map[uint32]func(element) (bool, error){mkvSeekHead: m.seekHead, mkvInfo: m.info, mkvTracks: m.tracks, mkvTags: m.tags}
	part := func(e element) (bool, error) {
		do := read[e.id]
		if do == nil {
			return e.id != mkvCluster, nil
		}
		if e.id != mkvSeekHead {
			delete(read, e.id)
		}
		return true, m.each(e, do)
	}
	if err := m.each(segment, part); err != nil {
		return err
	}
	for _, id := range []uint32{mkvInfo, mkvTracks, mkvTags} {
		at, said := m.seeks[id]
		if read[id] == nil || !said {
			continue
		}
		e, err := m.element(segment.at+at, segment.end)
		if err != nil {
			return err
		}
		if e.id != id {
			return fmt.Errorf("MKV: at byte %d: not what the seek head says", segment.at+at)
		}
		if _, err := part(e); err != nil {
			return err
		}
	}
	return nil
}

// element reads the head of the element at a byte, which ends before another.
func (m *matroska) element(at, end int64) (e element, err error) {
	if m.count++; m.count > maxElements {
		return e, fmt.Errorf("MKV: at byte %d: more than %d elements", at, maxElements)
	}
	var b [12]byte
	n := max(0, min(int64(len(b)), end-at))
	if at < 0 || at > end {
		return e, fmt.Errorf("MKV: at byte %d: beyond byte %d, where it ends", at, end)
	}
	if _, err := m.ReadAt(b[:n], at); err != nil {
		return e, fmt.Errorf("MKV: at byte %d: %w", at, err)
	}
	id, idLength := vint(b[:min(n, 4)], false)
	length, sizeLength := vint(b[idLength:n], true)
	if idLength == 0 || sizeLength == 0 {
		return e, fmt.Errorf("MKV: at byte %d: half an element", at)
	}
	e = element{uint32(id), at + int64(idLength+sizeLength), end}
	if length == 1<<(7*sizeLength)-1 { // unknown, as of a live stream: to the end of what holds it
		return e, nil
	}
	if length > uint64(end-e.at) {
		return e, fmt.Errorf("MKV: at byte %d: an element of %d bytes, in %d", at, length, end-e.at)
	}
	e.end = e.at + int64(length)
	return e, nil
}

// vint reads a number of variable length and how long it is, 0 where it is none; a number that counts lacks its marker.
func vint(b []byte, counts bool) (v uint64, n int) {
	for n = 1; n <= len(b); n++ {
		if mark := byte(0x80 >> (n - 1)); n <= 8 && b[0]&mark != 0 {
			for _, c := range b[:n] {
				v = v<<8 | uint64(c)
			}
			if counts {
				v &^= uint64(mark) << (8 * (n - 1))
			}
			return v, n
		}
	}
	return 0, 0
}

// each calls do for the elements within one, until it says that it has enough.
func (m *matroska) each(in element, do func(element) (bool, error)) error {
	for at := in.at; at < in.end; {
		e, err := m.element(at, in.end)
		if err != nil {
			return err
		}
		if more, err := do(e); err != nil || !more {
			return err
		}
		at = e.end
	}
	return nil
}

func (m *matroska) bytes(e element) ([]byte, error) {
	b := make([]byte, min(e.end-e.at, maxElementRead))
	if _, err := m.ReadAt(b, e.at); err != nil {
		return nil, fmt.Errorf("MKV: at byte %d: %w", e.at, err)
	}
	return b, nil
}

func (m *matroska) text(e element) (string, error) {
	b, err := m.bytes(e)
	return strings.TrimRight(string(b), "\x00"), err
}

func (m *matroska) number(e element) (v uint64, err error) {
	b, err := m.bytes(e)
	if len(b) > 8 {
		return 0, fmt.Errorf("MKV: at byte %d: a number of %d bytes", e.at, len(b))
	}
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, err
}

func (m *matroska) float(e element) (float64, error) {
	v, err := m.number(e)
	switch e.end - e.at {
	case 4:
		return float64(math.Float32frombits(uint32(v))), err
	case 8:
		return math.Float64frombits(v), err
	}
	return 0, err
}

func (m *matroska) seekHead(seek element) (bool, error) {
	if seek.id != mkvSeek {
		return true, nil
	}
	var id, at uint64
	err := m.each(seek, func(e element) (_ bool, err error) {
		switch e.id {
		case mkvSeekID:
			id, err = m.number(e)
		case mkvSeekPosition:
			at, err = m.number(e)
		}
		return true, err
	})
	m.seeks[uint32(id)] = int64(at & math.MaxInt64)
	return true, err
}

func (m *matroska) info(e element) (_ bool, err error) {
	var text string
	switch e.id {
	case mkvScale:
		m.scale, err = m.number(e)
	case mkvDuration:
		m.ticks, err = m.float(e)
	case mkvTitle:
		text, err = m.text(e)
		say(m.facts.Business, "title", text)
	case mkvWritingApp:
		text, err = m.text(e)
		say(m.facts.Entity, "writtenWith", text)
	case mkvDate: // nanoseconds since 2001
		var v uint64
		v, err = m.number(e)
		say(m.facts.Entity, "written", time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(v)).Format(time.RFC3339))
	}
	return true, err
}

// tracks takes the first video and the first sound.
func (m *matroska) tracks(e element) (bool, error) {
	if e.id != mkvTrack {
		return true, nil
	}
	m.track = track{channels: 1, rate: 8000} // where nothing says so
	if err := m.each(e, m.trackPart); err != nil {
		return false, err
	}
	to, t := m.facts.Entity, m.track
	codec := t.codec
	if name := mkvCodecs[codec]; name != "" {
		codec = name
	} else if strings.HasPrefix(codec, "A_AAC/") {
		codec = "AAC"
	}
	_, seen := to["width"]
	_, heard := to["channels"]
	switch {
	case t.kind == 1 && !seen:
		say(to, "codec", codec)
		say(to, "width", int(t.width))
		say(to, "height", int(t.height))
	case t.kind == 2 && !heard:
		key := "audioCodec"
		if m.facts.Kind == Audio {
			key = "codec"
		}
		say(to, key, codec)
		say(to, "channels", int(t.channels))
		say(to, "sampleRate", int(math.Round(min(max(t.rate, 0), math.MaxInt32))))
		if strings.HasPrefix(codec, "PCM") || codec == "FLAC" { // others have no samples of so many bits
			say(to, "bits", int(t.bits))
		}
	}
	return true, nil
}

func (m *matroska) trackPart(e element) (_ bool, err error) {
	t := &m.track
	switch e.id {
	case mkvTrackType:
		t.kind, err = m.number(e)
	case mkvCodec:
		t.codec, err = m.text(e)
	case mkvVideo, mkvAudio:
		err = m.each(e, m.trackPart)
	case mkvWidth:
		t.width, err = m.number(e)
	case mkvHeight:
		t.height, err = m.number(e)
	case mkvRate:
		t.rate, err = m.float(e)
	case mkvChannels:
		t.channels, err = m.number(e)
	case mkvBits:
		t.bits, err = m.number(e)
	}
	return true, err
}

// tags takes what is said of the whole, not of one of its tracks.
func (m *matroska) tags(tag element) (bool, error) {
	if tag.id != mkvTag {
		return true, nil
	}
	said := map[string]string{}
	ofTrack := false
	err := m.each(tag, func(e element) (bool, error) {
		name, text := "", ""
		if e.id != mkvTargets && e.id != mkvSimpleTag {
			return true, nil
		}
		err := m.each(e, func(e element) (_ bool, err error) {
			switch e.id {
			case mkvTrackUID:
				var uid uint64
				uid, err = m.number(e)
				ofTrack = ofTrack || uid != 0
			case mkvTagName:
				name, err = m.text(e)
			case mkvTagText:
				text, err = m.text(e)
			}
			return true, err
		})
		if _, there := said[strings.ToUpper(name)]; !there && name != "" {
			said[strings.ToUpper(name)] = text
		}
		return true, err
	})
	if err != nil || ofTrack {
		return true, err
	}
	for name, text := range said {
		key := mkvBusiness[name]
		if _, there := m.facts.Business[key]; key != "" && !there && (name != "COMMENT" || said["DESCRIPTION"] == "") {
			say(m.facts.Business, key, text)
		}
		if m.dates[name] == "" {
			m.dates[name] = text
		}
	}
	return true, nil
}
