package target

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"bagpipe/layout"

	"github.com/goccy/go-yaml"
)

// The kinds and layouts of targets.
const (
	KindFolder = "folder"
	KindS3     = "s3"
	KindSFTP   = "sftp"

	KindURL     = "url"     // of deliveries alone
	KindCommand = "command" // of deliveries alone

	LayoutBag = "bag"
	LayoutTar = "tar"

	LayoutOCFL = "ocfl"
)

// Config says where a target is; it stands below targets: in the settings.
type Config struct {
	Kind    string      `yaml:"kind"`    // folder, s3, sftp, url or command
	Layout  string      `yaml:"layout"`  // bag (the default), tar or ocfl
	Path    string      `yaml:"path"`    // of a folder, here or on the SFTP server
	Secrets string      `yaml:"secrets"` // a file that holds them, outside Git
	Streams int         `yaml:"streams"` // files at once
	Rate    layout.Rate `yaml:"rate"`    // bytes a second, of all streams together; 0: any
	Fixity  Fixity      `yaml:"fixity"`  // how often copies are looked at again

	S3Config   `yaml:",inline"`
	SFTPConfig `yaml:",inline"`
	Outlet     `yaml:",inline"`
	Keys       `yaml:",inline"`
}

// The formats of what is delivered.
const (
	FormatFiles = "files"
	FormatBag   = "bag"
	FormatSTAC  = "stac"
	FormatText  = "text"
)

// Outlet is what deliveries need beside; deposits ask for none of it.
type Outlet struct {
	Format   string `yaml:"format"`   // files (the default), bag, stac or text
	Template string `yaml:"template"` // of text: a file, relative to the workspace
	URL      string `yaml:"url"`      // of kind url: https://HOST/PATH/{item}
	Href     string `yaml:"href"`     // of kind url and format stac: what an item's files are had below, as HREF/ITEM/PATH
	Command  Argv   `yaml:"command"`  // of kind command: a program and its arguments
	// Timeout is of kind command: how long the program may take; 0: DefaultTimeout.
	Timeout layout.Duration `yaml:"timeout"`
	// Verify is of kind url bytes (what comes back is what went, the default) or status; of kind
	// sftp read (the default) or remote: the server itself digests.
	Verify string `yaml:"verify"`
}

// DefaultTimeout is for programs that send large items over slow lines, and do end.
const DefaultTimeout = 24 * time.Hour

const (
	verifyRead   = "read"
	verifyRemote = "remote"
)

// Argv is a program and its arguments, with a NUL between them.
type Argv string

// UnmarshalYAML reads a list.
func (a *Argv) UnmarshalYAML(b []byte) error {
	var list []string
	if err := yaml.Unmarshal(b, &list); err != nil || len(list) == 0 || list[0] == "" || strings.ContainsRune(strings.Join(list, ""), 0) {
		return fmt.Errorf("expected a program and its arguments, as [portal-put, --quiet]")
	}
	*a = Argv(strings.Join(list, "\x00"))
	return nil
}

// List is the program and its arguments.
func (a Argv) List() []string { return strings.Split(string(a), "\x00") }

// Deposits reports whether bags can be deposited there.
func (c Config) Deposits() bool { return c.Kind != KindURL && c.Kind != KindCommand }

// Where says where a target is: its kind and its address, as the settings have them.
func (c Config) Where() string {
	switch c.Kind {
	case KindURL:
		return c.Kind + " " + c.URL
	case KindCommand:
		return c.Kind + " " + strings.Join(c.Command.List(), " ")
	case KindS3:
		return fmt.Sprintf("%s %s/%s/%s", c.Kind, strings.TrimRight(c.Endpoint, "/"), c.Bucket, c.Prefix)
	case KindSFTP:
		return fmt.Sprintf("%s %s %s", c.Kind, c.Host, path.Clean(c.Path))
	}
	return c.Kind + " " + filepath.Clean(c.Path)
}

// Form says in which form a target has what is sent: a format and where its files are had, or the layout of its bags.
func (c Config) Form() string {
	if c.Kind == KindS3 || c.Kind == KindSFTP || c.Layout != "" {
		return cmp.Or(c.Layout, LayoutBag)
	}
	return strings.TrimSpace(cmp.Or(c.Format, FormatFiles) + " " + c.Href)
}

// ParseTemplate reads what a template: says. json of nothing is nothing, and no null.
func ParseTemplate(file, text string) (*template.Template, error) {
	return template.New(filepath.Base(file)).Option("missingkey=zero").Funcs(template.FuncMap{"json": func(v any) (any, error) {
		if v == nil {
			return nil, nil
		}
		data, err := json.Marshal(v)
		return string(data), err
	}}).Parse(text)
}

// CheckBase says what is wrong with an address that files are had below.
func CheckBase(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Host == "" && u.Scheme != "file" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(address, " \t\r\n") {
		return fmt.Errorf("expected an address that files are had below, as https://HOST/PATH, not %q", address)
	}
	return nil
}

func (c Config) checkOutlet() (key string, err error) {
	o := c.Outlet
	switch {
	case !slices.Contains([]string{"", FormatFiles, FormatBag, FormatSTAC, FormatText}, o.Format):
		return "format", fmt.Errorf("expected files, bag, stac or text, not %q", o.Format)
	case (o.Format == FormatText) != (o.Template != ""):
		return "template", fmt.Errorf("expected the template's file with format: text, and only there")
	case o.URL != "" && c.Kind != KindURL || o.Command != "" && c.Kind != KindCommand || o.Verify != "" && c.Kind != KindURL && c.Kind != KindSFTP:
		return "kind", fmt.Errorf("url is of kind url, verify of kind url or sftp, command of kind command")
	case o.Timeout != 0 && (c.Kind != KindCommand || o.Timeout < 0):
		return "timeout", fmt.Errorf("is of kind command: how long the program may take, as 2h")
	case o.Href != "" && (c.Kind != KindURL || o.Format != FormatSTAC):
		return "href", fmt.Errorf("is of kind url with format: stac; elsewhere the files go with their item")
	case o.Href != "" && CheckBase(o.Href) != nil:
		return "href", CheckBase(o.Href)
	case o.Format != "" && o.Format != FormatBag && (c.Kind == KindS3 || c.Kind == KindSFTP || c.Layout != ""):
		return "format", fmt.Errorf("expected bag where bags are deposited, not %q", o.Format)
	case c.Kind == KindSFTP && o.Verify != "" && o.Verify != verifyRead && o.Verify != verifyRemote:
		return "verify", fmt.Errorf("expected read or remote, not %q", o.Verify)
	case c.Kind != KindSFTP && o.Verify != "" && o.Verify != "bytes" && o.Verify != "status":
		return "verify", fmt.Errorf("expected bytes or status, not %q", o.Verify)
	}
	if c.Deposits() {
		return "", nil
	}
	if c.Path != "" || c.Layout != "" || c.S3Config != (S3Config{}) || c.SFTPConfig != (SFTPConfig{}) {
		return "kind", fmt.Errorf("a target of kind %s has kind, format, template, secrets and its own keys alone", c.Kind)
	}
	if c.Kind == KindCommand && o.Command == "" {
		return "command", fmt.Errorf("expected a program and its arguments, as [portal-put, --quiet]")
	}
	if u, err := url.Parse(o.URL); c.Kind == KindURL && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || !strings.Contains(o.URL, "{item}") && !strings.Contains(o.URL, "{key}")) {
		return "url", fmt.Errorf("expected an address with the item or the key in it, as https://HOST/items/{item}")
	}
	return "", nil
}

// Fixity says when a copy is due to be looked at again, and how closely; the zero value: never.
type Fixity struct {
	Every layout.Duration `yaml:"every"`
	Level Level           `yaml:"level"` // read (the default) or exists
	Rate  layout.Rate     `yaml:"rate"`  // bytes a second that are read for it; 0: as the target's
	Hours Hours           `yaml:"hours"` // when it may be looked at, by the machine's clock; "": at any time
}

// S3Config is of kind s3.
type S3Config struct {
	Endpoint string     `yaml:"endpoint"` // https://HOST[:PORT]
	Bucket   string     `yaml:"bucket"`
	Prefix   string     `yaml:"prefix"` // of all keys
	Region   string     `yaml:"region"`
	Style    string     `yaml:"style"` // path or host; "": by the endpoint
	CA       string     `yaml:"ca"`    // a file of certificates that sign the endpoint's
	Lock     LockConfig `yaml:"lock"`
}

// LockConfig is how long objects cannot be deleted; the zero value locks none.
type LockConfig struct {
	Mode string          `yaml:"mode"` // governance or compliance
	For  layout.Duration `yaml:"for"`
}

// SFTPConfig is of kind sftp.
type SFTPConfig struct {
	Host       string `yaml:"host"` // HOST[:PORT]
	User       string `yaml:"user"`
	KnownHosts string `yaml:"knownHosts"` // a file; no other host is talked to
	Key        string `yaml:"key"`        // a file; "": the agent's keys
}

// Check says which key is wrong, and how.
func (c Config) Check() (key string, err error) {
	switch {
	case c.Layout != "" && c.Layout != LayoutBag && c.Layout != LayoutTar && c.Layout != LayoutOCFL:
		return "layout", fmt.Errorf("expected bag, tar or ocfl, not %q", c.Layout)
	case c.Fixity.Level != "" && c.Fixity.Level != Read && c.Fixity.Level != Exists:
		return "fixity.level", fmt.Errorf("expected read or exists, not %q", c.Fixity.Level)
	case (c.Fixity.Level != "" || c.Fixity.Hours != "") && c.Fixity.Every <= 0:
		return "fixity.every", fmt.Errorf("expected a duration such as 90d")
	case c.Streams < 0 || c.Streams > mostStreams:
		return "streams", fmt.Errorf("expected a number from 0 (the default) to %d", mostStreams)
	}
	if _, _, err := c.Fixity.Hours.bounds(); c.Fixity.Hours != "" && err != nil {
		return "fixity.hours", err
	}
	if key, err := c.checkOutlet(); err != nil {
		return key, err
	}
	if key, err := c.Keys.check(c.Kind); err != nil {
		return key, err
	}
	switch c.Kind {
	case KindURL, KindCommand:
		return "", nil
	case KindFolder:
		if c.Path == "" {
			return "path", fmt.Errorf("expected the folder of the target")
		}
		if c.S3Config != (S3Config{}) || c.SFTPConfig != (SFTPConfig{}) {
			return "kind", fmt.Errorf("a folder has kind, layout, path, streams, rate, fixity, format and template alone")
		}
		return "", nil
	case KindS3:
		return c.checkS3()
	case KindSFTP:
		return c.checkSFTP()
	}
	return "kind", fmt.Errorf("expected folder, s3, sftp, url or command, not %q", c.Kind)
}

func (c Config) checkS3() (key string, err error) {
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" || u.User != nil:
		return "endpoint", fmt.Errorf("expected https://HOST or https://HOST:PORT")
	case c.Bucket == "":
		return "bucket", fmt.Errorf("expected the bucket's name")
	case c.Style != "" && c.Style != "path" && c.Style != "host":
		return "style", fmt.Errorf("expected path or host, not %q", c.Style)
	case strings.HasPrefix(c.Prefix, "/") || c.Prefix != "" && path.Clean(c.Prefix) != strings.TrimSuffix(c.Prefix, "/"):
		return "prefix", fmt.Errorf("expected a plain prefix such as archive/bags")
	case c.Lock != (LockConfig{}) && (c.Lock.Mode != "governance" && c.Lock.Mode != "compliance" || c.Lock.For <= 0):
		return "lock", fmt.Errorf("expected mode: governance or compliance, and for: a duration")
	case c.Path != "" || c.SFTPConfig != (SFTPConfig{}):
		return "kind", fmt.Errorf("an s3 target has no path, host, user, knownHosts and key")
	}
	return "", nil
}

func (c Config) checkSFTP() (key string, err error) {
	switch {
	case c.Host == "":
		return "host", fmt.Errorf("expected HOST or HOST:PORT")
	case c.User == "":
		return "user", fmt.Errorf("expected the user's name on the server")
	case c.KnownHosts == "":
		return "knownHosts", fmt.Errorf("expected a file with the server's key, as ssh-keyscan writes it")
	case !path.IsAbs(c.Path):
		return "path", fmt.Errorf("expected an absolute path on the server")
	case c.S3Config != (S3Config{}):
		return "kind", fmt.Errorf("an sftp target has no keys of an s3 target")
	}
	return "", nil
}

// address is the server's, with its port.
func (c SFTPConfig) address() string {
	if _, _, err := net.SplitHostPort(c.Host); err == nil {
		return c.Host
	}
	return net.JoinHostPort(c.Host, "22")
}

const mostStreams = 64

// Hours is a part of the day, as 22:00-05:00, from its first minute until before its last; "" is
// all of it.
type Hours string

// bounds are the minutes of the day that it begins and ends at.
func (h Hours) bounds() (from, until int, err error) {
	start, end, _ := strings.Cut(string(h), "-")
	for text, to := range map[string]*int{start: &from, end: &until} {
		at, err := time.Parse("15:04", strings.TrimSpace(text))
		if err != nil || start == end {
			return 0, 0, fmt.Errorf("expected a part of the day such as 22:00-05:00, not %q", string(h))
		}
		*to = at.Hour()*60 + at.Minute()
	}
	return from, until, nil
}

// Hold reports whether at, by its own zone, is within.
func (h Hours) Hold(at time.Time) bool {
	from, until, err := h.bounds()
	if h == "" || err != nil {
		return true
	}
	minute := at.Hour()*60 + at.Minute()
	if from < until {
		return from <= minute && minute < until
	}
	return minute >= from || minute < until
}
