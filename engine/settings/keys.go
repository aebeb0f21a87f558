package settings

import "bagpipe/layout"

// What stands below the keys of bagpipe.yaml that are no more than values.

// FetchSettings say where a bag's missing files may be fetched from; nowhere
// unless listed.
type FetchSettings struct {
	Hosts   []string `yaml:"hosts"`
	Folders []string `yaml:"folders"`
}

// InboxSettings say when a drop is taken in.
type InboxSettings struct {
	DropSettings `yaml:",inline"`
	Rescan       layout.Duration `yaml:"rescan"`
	Watch        *bool           `yaml:"watch"`
	Collections  string          `yaml:"collections"` // listed: those below collections: alone; open: every folder of inbox/
}

// LimitSettings bound what an archive may unpack to, and the free space below
// which work pauses.
type LimitSettings struct {
	Files     int64           `yaml:"files"`
	Bytes     layout.Size     `yaml:"bytes"`
	FileBytes layout.Size     `yaml:"fileBytes"`
	Ratio     int64           `yaml:"ratio"`
	Path      int             `yaml:"path"`
	Depth     int             `yaml:"depth"`
	Memory    layout.Size     `yaml:"memory"`
	Time      layout.Duration `yaml:"time"`
	Free      layout.Size     `yaml:"free"`
	Room      float64         `yaml:"room"`     // free space that a drop must find, in its expanded sizes
	InFlight  int             `yaml:"inFlight"` // items under way at once, of all workflows; 0: any number
}

// SyncSettings say when a run joins the workspace's history with those of other sites.
type SyncSettings struct {
	Every   layout.Duration `yaml:"every"`   // while it watches, and at its end; 0: never
	Silence layout.Duration `yaml:"silence"` // that a remote is given up after; 0: two minutes
}

// AnchorSettings say when the history is signed as it stands, and who says when that was.
type AnchorSettings struct {
	Every     layout.Duration `yaml:"every"`     // while a run watches, and at its end; 0: never
	Timestamp string          `yaml:"timestamp"` // URL of an authority by RFC 3161; "": none is asked
}

// TrustSettings say whose commits must be signed by a key that is listed.
type TrustSettings struct {
	Require []string `yaml:"require"` // people, sites
}

// RetrySettings are the floor and ceiling of the waits between tries.
type RetrySettings struct {
	First layout.Duration `yaml:"first"`
	Most  layout.Duration `yaml:"most"`
	Later layout.Duration `yaml:"later"`
}
