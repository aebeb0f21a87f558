package describe

import (
	"encoding/binary"
	"io"
	"strings"
	"time"
)

// readAVI reads an AVI's headers: the first video, and the first sound, of its streams.
func readAVI(f io.ReaderAt, size int64, facts *Facts) error {
	c := &chunked{ReaderAt: f, facts: facts, format: "AVI", order: binary.LittleEndian}
	_, end, err := c.open(size, "RIFFAVI ")
	if err != nil {
		return err
	}
	v := &avi{chunked: c}
	if err := c.each(12, end, v.chunk); err != nil {
		return err
	}
	frames := v.frames
	if v.allFrames > 0 { // of all parts of a file beyond 1 GiB, by OpenDML
		frames = v.allFrames
	}
	if frames > 0 && v.perFrame > 0 {
		saySeconds(facts.Entity, float64(frames)*float64(v.perFrame)/1e6)
	} else {
		saySeconds(facts.Entity, v.seconds)
	}
	facts.setFirst(v.dates, "")
	return nil
}

type avi struct {
	*chunked
	kind               string // of the stream that is read: vids, auds
	seconds            float64
	perFrame           uint32 // microseconds
	frames, allFrames  uint32
	hasVideo, hasSound bool
	dates              []string
}

func (v *avi) chunk(k chunk) error {
	le, e := v.order, v.facts.Entity
	switch k.id {
	case "LIST":
		kind, err := v.bytes(k, 4)
		if err != nil {
			return err
		}
		switch string(kind[:4]) {
		case "hdrl", "strl", "odml":
			v.kind = ""
			return v.each(k.at+4, k.at+k.n, v.chunk)
		case "INFO":
			return v.readInfo(k, &v.dates)
		}
	case "avih":
		b, err := v.bytes(k, 40)
		if err != nil {
			return err
		}
		v.perFrame, v.frames = le.Uint32(b), le.Uint32(b[16:])
		say(e, "width", int(le.Uint32(b[32:])))
		say(e, "height", int(le.Uint32(b[36:])))
	case "dmlh":
		b, err := v.bytes(k, 4)
		if err != nil {
			return err
		}
		v.allFrames = le.Uint32(b)
	case "strh":
		b, err := v.bytes(k, 36)
		if err != nil {
			return err
		}
		v.kind = string(b[:4])
		if rate := le.Uint32(b[24:]); rate > 0 && v.seconds == 0 {
			v.seconds = float64(le.Uint32(b[32:])) * float64(le.Uint32(b[20:])) / float64(rate)
		}
	case "strf":
		switch {
		case v.kind == "vids" && !v.hasVideo:
			b, err := v.bytes(k, 20)
			if err != nil {
				return err
			}
			v.hasVideo = true
			codec := string(b[16:20])
			if codec == "\x00\x00\x00\x00" {
				codec = "RGB"
			}
			say(e, "codec", codec)
		case v.kind == "auds" && !v.hasSound:
			b, err := v.bytes(k, 16)
			if err != nil {
				return err
			}
			v.hasSound = true
			soundOf(b).say(e, "audioCodec")
		}
	case "IDIT":
		text, err := v.text(k)
		if at, bad := time.Parse("Mon Jan _2 15:04:05 2006", strings.TrimSpace(clean(text))); bad == nil {
			text = at.Format("2006-01-02 15:04:05")
		}
		v.dates = append(v.dates, text)
		return err
	}
	return nil
}
