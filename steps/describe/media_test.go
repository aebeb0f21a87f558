package describe

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Tags keep who did what, and the day where they have one; a date that is none is told of, its year kept.
func TestWhatTagsSay(t *testing.T) {
	for _, c := range []struct {
		name            string
		data            []byte
		start, end      string
		precision, says string
	}{
		{"a.flac", flac("ARTIST=A singer", "DATE=2013-06-14"), "2013-06-14T00:00:00Z", "2013-06-14T23:59:59Z", "day", ""},
		{"a.flac", flac("ARTIST=A singer", "DATE=2013-06"), "2013-06-01T00:00:00Z", "2013-06-30T23:59:59Z", "month", ""},
		{"a.flac", flac("ARTIST=A singer", "DATE=2013 or so"), "2013-01-01T00:00:00Z", "2013-12-31T23:59:59Z", "year", ""},
		{"a.flac", flac("ARTIST=A singer", "DATE=unknown"), "", "", "", `"unknown" is no time`},
		{"a.mp3", id3("TPE1", "A singer", "TYER", "2013", "TDAT", "1406"), "2013-06-14T00:00:00Z", "2013-06-14T23:59:59Z", "day", ""},
		{"a.mp3", id3("TPE1", "A singer", "TYER", "2013"), "2013-01-01T00:00:00Z", "2013-12-31T23:59:59Z", "year", ""},
		{"a.mp3", id3("TPE1", "A singer", "TDRC", "2013-06-14T10:11"), "2013-06-14T10:11:00Z", "2013-06-14T10:11:59Z", "second", "no time zone"},
		{"a.mp3", id3("TPE1", "A singer", "TDRC", "2013-06-14T10"), "2013-06-14T10:00:00Z", "2013-06-14T10:59:59Z", "second", "no time zone"},
	} {
		f, err := write(t, c.name, string(c.data))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		says(t, f, map[string]any{"creator": "A singer", "composer": nil})
		isTime(t, f, c.start, c.end, c.precision, c.says)
	}
	f, err := write(t, "a.flac", string(flac("ARTIST=A singer", "COMPOSER=A composer")))
	if err != nil {
		t.Fatal(err)
	}
	says(t, f, map[string]any{"creator": "A singer", "composer": "A composer"})
}

// isTime checks when a file is from, and that a part of its warnings says so.
func isTime(t *testing.T, f *Facts, start, end, precision, says string) {
	t.Helper()
	if said := strings.Join(f.Warnings, "; "); (says == "") != (said == "") || !strings.Contains(said, says) {
		t.Errorf("%v: says %q, want %q", f.Business, said, says)
	}
	if (f.Time == nil) != (start == "") {
		t.Errorf("%v: %+v, want %s", f.Business, f.Time, start)
	} else if f.Time != nil && (f.Time.Start.Format(time.RFC3339) != start || f.Time.End.Format(time.RFC3339) != end || f.Time.Precision != precision) {
		t.Errorf("%v: %+v, want %s to %s, to the %s", f.Business, f.Time, start, end, precision)
	}
}

// riff is a chunk of little-endian length, iff one of big-endian, each of its parts.
func riff(id string, parts ...string) string { return iffBy(binary.LittleEndian, id, parts...) }
func iff(id string, parts ...string) string  { return iffBy(binary.BigEndian, id, parts...) }

func iffBy(order binary.AppendByteOrder, id string, parts ...string) string {
	body := strings.Join(parts, "")
	padding := strings.Repeat("\x00", len(body)%2)
	return id + string(order.AppendUint32(nil, uint32(len(body)))) + body + padding
}

// le is numbers one after another, little-endian.
func le(numbers ...any) string {
	var b bytes.Buffer
	for _, n := range numbers {
		if err := binary.Write(&b, binary.LittleEndian, n); err != nil {
			panic(err)
		}
	}
	return b.String()
}

// pcm is a format of sound: channels, samples a second, bits.
func pcm(channels, rate, bits int) string {
	block := channels * bits / 8
	return le(uint16(1), uint16(channels), uint32(rate), uint32(rate*block), uint16(block), uint16(bits))
}

func fixed(n int, text string) string { return text + strings.Repeat("\x00", n-len(text)) }

// mkvOf is an element of Matroska.
func mkvOf(id uint32, parts ...string) string {
	body := strings.Join(parts, "")
	return strings.TrimLeft(string(binary.BigEndian.AppendUint32(nil, id)), "\x00") + "\x08" + string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
}

func be(v float64) string { return string(binary.BigEndian.AppendUint64(nil, math.Float64bits(v))) }

// mediaSamples are small files of each kind, made here.
func mediaSamples() map[string]string {
	head := mkvOf(ebmlHead, mkvOf(ebmlDocType, "webm"))
	info := mkvOf(mkvInfo, mkvOf(mkvDuration, be(2500)), mkvOf(mkvTitle, "A film"), mkvOf(mkvDate, "\x00\x00\x00\x00\x3b\x9a\xca\x00"))
	tracks := mkvOf(mkvTracks, mkvOf(mkvTrack, mkvOf(mkvTrackType, "\x01"), mkvOf(mkvCodec, "V_VP9"), mkvOf(mkvVideo, mkvOf(mkvWidth, "\x01\x40"), mkvOf(mkvHeight, "\xf0"))),
		mkvOf(mkvTrack, mkvOf(mkvTrackType, "\x02"), mkvOf(mkvCodec, "A_OPUS"), mkvOf(mkvAudio, mkvOf(mkvRate, be(48000)), mkvOf(mkvChannels, "\x02"))))
	simple := func(name, text string) string {
		return mkvOf(mkvSimpleTag, mkvOf(mkvTagName, name), mkvOf(mkvTagText, text))
	}
	tags := mkvOf(mkvTags, mkvOf(mkvTag, mkvOf(mkvTargets, mkvOf(mkvTrackUID, "\x01")), simple("TITLE", "A track")), mkvOf(mkvTag, simple("ARTIST", "A director"), simple("DATE_RECORDED", "2013-06-14")))
	cluster := mkvOf(mkvCluster, strings.Repeat("\x00", 100))
	seek := func(at int) string {
		return mkvOf(mkvSeekHead, mkvOf(mkvSeek, mkvOf(mkvSeekID, "\x12\x54\xc3\x67"), mkvOf(mkvSeekPosition, string(binary.BigEndian.AppendUint32(nil, uint32(at))))))
	}
	before := seek(len(seek(0)+info+tracks+cluster)) + info + tracks + cluster
	aiffRate := "\x40\x0e\xac\x44\x00\x00\x00\x00\x00\x00" // 44,100
	page := func(granule uint64, body string) string {
		return "OggS" + le(byte(0), byte(0), granule, uint32(7), uint32(0), uint32(0), byte(1), byte(len(body))) + body
	}
	return map[string]string{
		"a.wav": riff("RIFF", "WAVE", riff("bext", fixed(256, "A talk"), fixed(32, "Radio"), fixed(32, "DE123"), "2013-06-14", "10:11:12", strings.Repeat("\x00", 264)), riff("fmt ", pcm(2, 8000, 16)),
			riff("LIST", "INFO", riff("INAM", "A song\x00"), riff("IART", "A singer"), riff("ICRD", "2012")), riff("data", strings.Repeat("\x00", 16000))),
		"a.aiff": iff("FORM", "AIFF", iff("NAME", "A song"), iff("AUTH", "A singer"), iff("COMM", "\x00\x02", "\x00\x00\x56\x22", "\x00\x10", aiffRate), iff("SSND", "\x00\x00\x00\x00")),
		"a.avi": riff("RIFF", "AVI ", riff("LIST", "hdrl", riff("avih", le(uint32(100000)), strings.Repeat("\x00", 12), le(uint32(25)), strings.Repeat("\x00", 12), le(uint32(320), uint32(240))),
			riff("LIST", "strl", riff("strh", fixed(36, "vidsMJPG")), riff("strf", fixed(16, ""), "MJPG")), riff("LIST", "strl", riff("strh", fixed(36, "auds")), riff("strf", pcm(1, 8000, 8))),
			riff("IDIT", "Fri Jun 14 10:11:12 2013\n\x00")), riff("LIST", "INFO", riff("INAM", "A film")), riff("LIST", "movi", strings.Repeat("\x00", 100))),
		"a.webm": head + mkvOf(mkvSegment, before, tags),
		"a.opus": page(0, "OpusHead"+le(byte(1), byte(2), uint16(312), uint32(44100), uint16(0), byte(0))) + page(120312, "sound") + page(math.MaxUint64, "more"),
	}
}

// Sound and film say how long they are and of what, in each of their containers.
func TestContainers(t *testing.T) {
	samples := mediaSamples()
	for name, want := range map[string]map[string]any{
		"a.wav": {"format": "WAV", "codec": "PCM", "channels": 2, "sampleRate": 8000, "bits": 16, "seconds": 0.5, "title": "A song", "creator": "A singer", "description": "A talk",
			"originator": "Radio", "identifier": "DE123"},
		"a.aiff": {"format": "AIFF", "codec": "PCM", "channels": 2, "sampleRate": 44100, "bits": 16, "seconds": 0.5, "title": "A song", "creator": "A singer"},
		"a.avi":  {"format": "AVI", "codec": "MJPG", "width": 320, "height": 240, "seconds": 2.5, "audioCodec": "PCM", "channels": 1, "sampleRate": 8000, "title": "A film"},
		"a.webm": {"format": "WebM", "codec": "VP9", "width": 320, "height": 240, "seconds": 2.5, "audioCodec": "Opus", "channels": 2, "sampleRate": 48000, "title": "A film",
			"creator": "A director", "written": "2001-01-01T00:00:01Z"},
	} {
		f, err := write(t, name, samples[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		says(t, f, want)
		if start := map[string]string{"a.wav": "2013-06-14T10:11:12Z", "a.avi": "2013-06-14T10:11:12Z", "a.webm": "2013-06-14T00:00:00Z"}[name]; start != "" && (f.Time == nil || f.Time.Start.Format(time.RFC3339) != start) {
			t.Errorf("%s: %+v", name, f.Time)
		}
	}
	f := &Facts{Entity: map[string]any{}}
	if err := readOgg(strings.NewReader(samples["a.opus"]), int64(len(samples["a.opus"])), f); err != nil {
		t.Fatal(err)
	}
	says(t, f, map[string]any{"codec": "Opus", "channels": 2, "sampleRate": 44100, "seconds": 2.5})
	live := strings.NewReplacer("RIFF"+samples["a.wav"][4:8], "RF64\xff\xff\xff\xff", "data"+le(uint32(16000)), "data\xff\xff\xff\xff").Replace(samples["a.wav"])
	for name, ds64 := range map[string]string{"a stream": "", "RF64": riff("ds64", le(uint64(0), uint64(16000), uint64(0)))} {
		f, err := write(t, "a.wav", live[:12]+ds64+live[12:])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		says(t, f, map[string]any{"seconds": 0.5, "title": "A song"})
	}
}

// Lengths that lie are refused with the byte where they stand, and nothing is walked through without end.
func TestHostileContainers(t *testing.T) {
	samples := mediaSamples()
	many := strings.Repeat("\xec\x80", maxElements+1) // empty elements
	for _, c := range []struct{ name, data, says string }{
		{"a.wav", "RIFX", "WAV: at byte 0: no RIFFWAVE"},
		{"a.wav", strings.Replace(samples["a.wav"], "fmt \x10", "fmt \x02", 1), "bytes, less than 16"},
		{"a.wav", strings.Replace(samples["a.wav"], "data"+le(uint32(16000)), "data\xf0\xff\xff\xff", 1), `: a chunk "data" of 4294967280 bytes, in 16000`},
		{"a.wav", riff("RIFF", "WAVE"), "at byte 12: nothing says of what format"},
		{"a.wav", riff("RIFF", "WAVE", strings.Repeat("junk\x00\x00\x00\x00", maxChunks+1)), "at byte 80012: more than 10000 chunks"},
		{"a.wav", riff("RF64", "WAVE", riff("ds64", le(uint64(0), uint64(1<<63), uint64(0))), "data\xff\xff\xff\xff"), `at byte 44: a chunk "data" of 9223372036854775807 bytes, in 0`},
		{"a.aiff", "FORM", "AIFF: at byte 0: no FORMAIFF"},
		{"a.aiff", iff("FORM", "AIFF", iff("COMM", "\x00")), `at byte 12: a chunk "COMM" of 1 bytes`},
		{"a.avi", riff("RIFF", "AVI ", riff("LIST", "hd")), `at byte 12: a chunk "LIST" of 2 bytes`},
		{"a.avi", riff("RIFF", "AVI ", riff("LIST", "hdrl", "avih\xff\xff\xff\x7f")), `at byte 24: a chunk "avih" of 2147483647 bytes, in 0`},
		{"a.opus", "OggX", "OGG: at byte 0: no page"},
		{"a.webm", "nonsense", "MKV: at byte 0: no EBML"},
		{"a.webm", "\x1a\x45\xdf\xa3\x80", "at byte 5: half an element"},
		{"a.webm", "\x1a\x45\xdf\xa3\x80\xec\x80", "at byte 5: no segment"},
		{"a.webm", "\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\x88", "at byte 5: an element of 8 bytes, in 0"},
		{"a.webm", "\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff" + many, "more than 10000 elements"},
		{"a.webm", "\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff" + mkvOf(mkvInfo, mkvOf(mkvScale, "123456789")), "a number of 9 bytes"},
		{"a.webm", "\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff" + mkvOf(mkvSeekHead, mkvOf(mkvSeek, mkvOf(mkvSeekID, "\x12\x54\xc3\x67"), mkvOf(mkvSeekPosition, "\x7f\xff\xff\xff\xff\xff\xff\xff"))), "where it ends"},
	} {
		if f, err := write(t, c.name, c.data); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %.20q: %+v, %v, want %q", c.name, c.data, f, err, c.says)
		}
	}
	short := strings.Replace(samples["a.wav"], samples["a.wav"][4:8], "\xf0\xff\xff\x00", 1)
	if f, err := write(t, "a.wav", short); err != nil || !strings.Contains(f.Warnings[0], "at byte 4: it says that 16777200 bytes follow") {
		t.Errorf("%+v, %v", f, err)
	}
}

// What ffmpeg writes is read as ffprobe reads it.
func TestAgainstFFprobe(t *testing.T) {
	if _, err := exec.LookPath("ffprobe"); err != nil {
		t.Skip("ffmpeg is not here")
	}
	sound := []string{"-f", "lavfi", "-i", "sine=sample_rate=44100:duration=2.5"}
	film := []string{"-f", "lavfi", "-i", "testsrc=size=160x120:rate=10:duration=1"}
	for name, how := range map[string][]string{
		"a.wav": {"-ac", "2", "-c:a", "pcm_s24le"}, "float.wav": {"-c:a", "pcm_f32le"}, "ima.wav": {"-c:a", "adpcm_ima_wav"}, "rf64.wav": {"-rf64", "always"}, "a.aiff": nil, "a.opus": nil, "a.ogg": nil,
		"a.flac": nil, "flac.oga": {"-c:a", "flac"}, "a.mka": nil, "a.webm": {"film", "-c:v", "libvpx", "-deadline", "realtime"}, "a.mkv": {"film", "-c:v", "ffv1", "-c:a", "pcm_s16le"}, "a.avi": {"film", "-c:v", "mjpeg", "-c:a", "pcm_s16le"}, "a.mp4": {"film"}, "a.mov": {"film"}, "a.m4a": nil, "alac.m4a": {"-c:a", "alac"},
		"vbr.mp3": {"-c:a", "libmp3lame", "-q:a", "4"}, "cbr.mp3": {"-c:a", "libmp3lame", "-b:a", "128k", "-write_xing", "0"}, "low.mp3": {"-c:a", "libmp3lame", "-ar", "16000", "-ac", "1", "-id3v2_version", "4"},
	} {
		path := filepath.Join(t.TempDir(), name)
		args := append([]string{"-v", "error"}, sound...)
		if len(how) > 0 && how[0] == "film" {
			args, how = append(args, film...), how[1:]
		}
		args = append(append(args, how...), "-metadata", "title=A song", "-metadata", "date=2013-06-14", path)
		if out, err := exec.Command("ffmpeg", args...).CombinedOutput(); err != nil {
			t.Logf("%s: %v: %s", name, err, out) // an encoder that this ffmpeg lacks
			continue
		}
		out, err := exec.Command("ffprobe", "-v", "error", "-show_format", "-show_streams", "-of", "json", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		var probed struct {
			Streams []struct {
				Width, Height, Channels int
				Rate                    string `json:"sample_rate"`
			}
			Format struct{ Duration string }
		}
		if err := json.Unmarshal(out, &probed); err != nil {
			t.Fatal(err)
		}
		f := read(t, path)
		seconds, err := strconv.ParseFloat(probed.Format.Duration, 64)
		if is, _ := f.Entity["seconds"].(float64); err != nil || math.Abs(is-seconds) > 0.06 {
			t.Errorf("%s: %v seconds, ffprobe says %v", name, f.Entity["seconds"], seconds)
		}
		for _, s := range probed.Streams {
			for key, n := range map[string]int{"width": s.Width, "height": s.Height, "channels": s.Channels} {
				if is, _ := f.Entity[key].(int); n != 0 && is != n {
					t.Errorf("%s: %s is %v, ffprobe says %d", name, key, f.Entity[key], n)
				}
			}
			if s.Rate != "" && fmt.Sprint(f.Entity["sampleRate"]) != s.Rate {
				t.Errorf("%s: sampleRate is %v, ffprobe says %s", name, f.Entity["sampleRate"], s.Rate)
			}
		}
		if name != "flac.oga" && f.Business["title"] != "A song" {
			t.Errorf("%s: %v", name, f.Business)
		}
		if dated := name != "flac.oga" && name != "a.aiff"; dated && (f.Time == nil || f.Time.Precision != "day") {
			t.Errorf("%s: %+v", name, f.Time)
		}
	}
}
