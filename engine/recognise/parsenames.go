package recognise

import "fmt"

// sets checks what is asked of files that belong together.
func (c *checker) sets(s *Sets, at string) (err error) {
	if s == nil {
		return nil
	}
	if s.Main == "" {
		return c.file.Errorf(at, "expected main: a regular expression of the file that names its set")
	}
	known := map[string]bool{}
	for v := range c.known {
		known[v] = true
	}
	if s.main, err = c.pattern(s.Main, at+".main"); err != nil {
		return err
	}
	if err := checkVariables(s.By, c.known); err != nil {
		return c.file.Errorf(at+".by", "%v", err)
	}
	if err := c.templates(s.Required, at+".required"); err != nil {
		return err
	}
	if err := c.templates(s.Optional, at+".optional"); err != nil {
		return err
	}
	if s.Max == nil || *s.Max > 1 {
		c.known = known // of several sets there is no one group
	}
	return c.bounds(s.Min, s.Max, at)
}

func (c *checker) bounds(least, most *int, at string) error {
	if least != nil && *least < 0 {
		return c.file.Errorf(at+".min", "expected a number from 0 up")
	}
	if most != nil && (*most < 0 || least != nil && *most < *least) {
		return c.file.Errorf(at+".max", "expected a number not less than min")
	}
	return nil
}

func (c *checker) counts(list []Count, at string) (err error) {
	for i := range list {
		n, here := &list[i], fmt.Sprintf("%s[%d]", at, i)
		if n.Name == "" && n.Regexp == "" && len(n.MIME) == 0 {
			return c.file.Errorf(here, "expected name, regexp or mime: the names that are counted")
		}
		if n.Min == nil && n.Max == nil {
			return c.file.Errorf(here, "expected min, max or both")
		}
		if err := c.bounds(n.Min, n.Max, here); err != nil {
			return err
		}
		if n.Name != "" {
			if err := c.templates(Texts{n.Name}, here+".name"); err != nil {
				return err
			}
		}
		known := c.known
		c.known = map[string]bool{} // of several names there is no one group
		n.regexp, err = c.pattern(n.Regexp, here+".regexp")
		c.known = known
		if err != nil {
			return err
		}
		if err := c.bytes(&Match{MIME: n.MIME}, here); err != nil {
			return err
		}
	}
	return nil
}

// documents checks what is asked of XML and JSON.
func (c *checker) documents(m *Match, at string) (err error) {
	for _, of := range []struct {
		key  string
		list []InDocument
	}{{"xml", m.XML}, {"json", m.JSON}} {
		for i := range of.list {
			d, here := &of.list[i], fmt.Sprintf("%s.%s[%d]", at, of.key, i)
			if d.Path == "" {
				return c.file.Errorf(here, "expected path: the place in the document")
			}
			if len(d.Path) > maxPath {
				return c.file.Errorf(here+".path", "the path is %d bytes long; at most %d", len(d.Path), maxPath)
			}
			if of.key == "xml" {
				if d.xpath, err = compileXPath(d.Path, c.file.Namespaces); err != nil {
					return c.file.Errorf(here+".path", "%v", err)
				}
			}
			if d.File != "" {
				if err := c.templates(Texts{d.File}, here+".file"); err != nil {
					return err
				}
			}
			if d.matches, err = c.pattern(d.Matches, here+".matches"); err != nil {
				return err
			}
		}
	}
	return nil
}
