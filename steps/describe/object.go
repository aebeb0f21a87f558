package describe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"bagpipe/steps/space"

	"github.com/paulmach/orb"
)

// File is one file of an object and what it says.
type File struct {
	Name string `json:"-"`
	Size int64  `json:"-"`
	*Facts
}

// Object is what the files of an object say together.
type Object struct {
	Entity   map[string]any
	Business map[string]any
	Time     *Time
	Space    *space.Space
	Warnings []string
}

// Combine makes one description of what an object's files say: of several that say the
// same thing differently, the more telling kind decides, then the larger file, then the
// name. What a side-car says of its subject goes before what stands within files.
func Combine(files []File) *Object {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), -cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	o := &Object{Business: map[string]any{}}
	sideCars, data := []File{}, []File{}
	for _, f := range files {
		switch {
		case f.Error != "":
		case f.Kind == Metadata:
			sideCars = append(sideCars, f)
		default:
			data = append(data, f)
		}
	}
	if len(data) > 0 {
		f := data[0]
		o.Entity = maps.Clone(f.Entity)
		o.Entity["file"], o.Entity["kind"] = f.Name, f.Kind
	}
	for _, f := range slices.Concat(sideCars, data) {
		for key, value := range f.Business {
			if _, there := o.Business[key]; !there {
				o.Business[key] = value
			}
		}
	}
	o.Time = times(sideCars)
	if o.Time == nil {
		o.Time = times(data)
	}
	o.combineSpace(spaces(data), spaces(sideCars))
	return o
}

// times is the time from the first start to the last end, as exact as the least exact of them; without an end where a period goes on.
func times(files []File) (all *Time) {
	more := 0
	for _, f := range files {
		switch t := f.Time; {
		case t == nil:
		case all == nil:
			c := *t
			c.Source = f.Name
			all = &c
		default:
			if more++; slices.Index(precisions, t.Precision) < slices.Index(precisions, all.Precision) {
				all.Precision = t.Precision
			}
			if t.Start.Before(all.Start) {
				all.Start = t.Start
			}
			if all.End.IsZero() || t.End.IsZero() { // one that goes on
				all.End = time.Time{}
			} else if t.End.After(all.End) {
				all.End = t.End
			}
		}
	}
	if more > 0 {
		all.Source = fmt.Sprintf("%s and %d more", all.Source, more)
	}
	return all
}

func spaces(files []File) (all []*space.Space) {
	for _, f := range files {
		if f.Space != nil {
			all = append(all, f.Space)
		}
	}
	return all
}

// combineSpace takes the footprint from the data, whose position in WGS 84 comes from a
// side-car where the data's own has none, and compares the two.
func (o *Object) combineSpace(data, said []*space.Space) {
	o.Space = o.union(data)
	other := o.union(said)
	switch {
	case o.Space == nil:
		o.Space = other
	case other == nil || other.WGS84 == nil:
	case o.Space.WGS84 == nil:
		o.Space.WGS84 = other.WGS84
		o.Space.Source += "; in WGS 84: " + other.Source
	case !meet(o.Space.WGS84.Bounds, other.WGS84.Bounds):
		o.warn("the footprint lies outside the bounds that %s gives", other.Source)
	}
}

// meet reports whether two bounds touch; those across the antimeridian are not compared.
func meet(a, b []float64) bool {
	if a[0] > a[2] || b[0] > b[2] {
		return true
	}
	return a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3]
}

// union is one footprint of several: the box around them. One that is nowhere counts where it is the only one.
func (o *Object) union(all []*space.Space) *space.Space {
	if placed := slices.DeleteFunc(slices.Clone(all), func(s *space.Space) bool { return s.Native == nil }); len(placed) > 0 {
		all = placed
	}
	if len(all) < 2 {
		if len(all) == 1 {
			return all[0]
		}
		return nil
	}
	var boxes []orb.Bound
	var sides space.Sides
	source := fmt.Sprintf("%s and %d more", all[0].Source, len(all)-1)
	for _, s := range all {
		if s.WGS84 != nil {
			b := s.WGS84.Bounds
			east := b[2]
			if b[0] > east {
				east += 360
			}
			boxes = append(boxes, orb.Bound{Min: orb.Point{b[0], b[1]}, Max: orb.Point{east, b[3]}})
			sides.Add(boxes[len(boxes)-1])
		}
	}
	if len(boxes) == 0 {
		return all[0]
	}
	var points []orb.Point
	for _, b := range boxes {
		if sides.Across() {
			b = space.Beside(b)
		}
		points = append(points, b.ToRing()...)
	}
	hull := space.Hull(points)
	s, warnings := space.Outline(hull, space.FromEPSG(4326), source)
	o.Warnings = append(o.Warnings, warnings...)
	apart := func(t *space.Space) bool {
		return t.CRS == nil || all[0].CRS == nil || *t.CRS != *all[0].CRS || t.Native.Bounds[0] > t.Native.Bounds[2]
	}
	if s != nil && sides.Across() {
		s.NativeOnGlobe(hull)
	}
	if s != nil && !slices.ContainsFunc(all, apart) {
		points = points[:0]
		for _, t := range all {
			b := t.Native.Bounds
			points = append(points, orb.Point{b[0], b[1]}, orb.Point{b[0], b[3]}, orb.Point{b[2], b[1]}, orb.Point{b[2], b[3]})
		}
		native, _ := space.Outline(space.Hull(points), space.CRS{}, source)
		s.CRS, s.Native = all[0].CRS, native.Native
	}
	return s
}

func (o *Object) warn(format string, args ...any) {
	o.Warnings = append(o.Warnings, fmt.Sprintf(format, args...))
}

// Metadata gives the members of the manifest's metadata. Those that nothing is said of are
// nil, so that what an earlier description said goes.
func (o *Object) Metadata() (map[string]any, error) {
	out := map[string]any{"entity": nil, "business": nil, "time": nil, "space": nil}
	for key, v := range map[string]any{"entity": o.Entity, "business": o.Business, "time": o.Time, "space": o.Space} {
		data, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, err
		}
		if len(m) > 0 {
			out[key] = m
		}
	}
	return out, nil
}
