package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Config is worker.yaml.
type Config struct {
	Schema   int               `yaml:"schema"`
	Name     string            `yaml:"name"`
	Slots    int               `yaml:"slots"`
	Prefetch int               `yaml:"prefetch"`
	Labels   map[string]string `yaml:"labels"`
	Folder   string            `yaml:"folder"`
	Cache    layout.Size       `yaml:"cache"`
	Bytes    string            `yaml:"bytes"`
	Errors   Errors            `yaml:"errors"`
	Robots   []Robot           `yaml:"robots"`
}

// Errors say when a worker whose robots fail leaves: count of the last window attempts.
type Errors struct {
	Count  int `yaml:"count"` // 0: never
	Window int `yaml:"window"`
}

// Robot is one robot that the worker offers: a built-in one, or a program.
type Robot struct {
	Builtin    string            `yaml:"builtin"`
	Name       string            `yaml:"name"`
	Command    []string          `yaml:"command"`
	Version    string            `yaml:"version"`
	Instances  int               `yaml:"instances"`
	Parameters map[string]any    `yaml:"parameters"`
	Env        map[string]string `yaml:"env"`
	WarmUp     []string          `yaml:"warmUp"`
	WarmUpWith []string          `yaml:"warmUpWith"` // folders of kept inputs, that are run through
}

const (
	configSchema  = 1
	bytesAuto     = "auto"
	bytesTransfer = "transfer"
	mostSlots     = 10_000
	mostWindow    = 10_000
)

// ParseConfig reads and checks worker.yaml; its errors are *layout.FileError.
func ParseConfig(file string, data []byte, builtins map[layout.Name]steps.Builtin) (*Config, error) {
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	c := &Config{}
	if err := y.Decode(c); err != nil {
		return nil, err
	}
	if c.Schema != configSchema {
		return nil, y.Errorf("$.schema", "expected schema: %d", configSchema)
	}
	return c, c.check(y, builtins)
}

func (c *Config) check(y *layout.YAML, builtins map[layout.Name]steps.Builtin) error {
	if _, err := layout.ParseName(c.Name); c.Name != "" && err != nil {
		return y.Errorf("$.name", "%v", err)
	}
	if c.Slots < 0 || c.Slots > mostSlots {
		return y.Errorf("$.slots", "expected 1 to %d", mostSlots)
	}
	if c.Prefetch < 0 || c.Prefetch > mostSlots {
		return y.Errorf("$.prefetch", "expected 0 to %d", mostSlots)
	}
	if c.Bytes != "" && c.Bytes != bytesAuto && c.Bytes != bytesTransfer {
		return y.Errorf("$.bytes", "expected %s or %s, not %q", bytesAuto, bytesTransfer, c.Bytes)
	}
	if e := c.Errors; e.Count < 0 || e.Window < 0 || e.Window > mostWindow || e.Count > 0 && e.Window < e.Count || e.Count == 0 && e.Window > 0 {
		return y.Errorf("$.errors", "expected count: failures of the last window: attempts, at most %d", mostWindow)
	}
	if len(c.Robots) == 0 {
		return y.Errorf("$", "expected robots: a worker that offers none does nothing")
	}
	seen := map[string]bool{}
	for i, o := range c.Robots {
		at := fmt.Sprintf("$.robots[%d]", i)
		if err := o.check(y, at, builtins); err != nil {
			return err
		}
		key := o.Builtin + "\x00" + o.name()
		if seen[key] {
			return y.Errorf(at, "%s is offered twice", o.name())
		}
		seen[key] = true
	}
	return nil
}

func (o Robot) check(y *layout.YAML, at string, builtins map[layout.Name]steps.Builtin) error {
	switch {
	case o.Builtin != "" && (o.Name != "" || o.Command != nil || o.Env != nil || o.WarmUp != nil):
		return y.Errorf(at, "builtin: stands alone, with instances:")
	case o.Builtin != "":
		if b, ok := builtins[layout.Name(o.Builtin)]; !ok || b.Deposits || b.Here != "" {
			return y.Errorf(at+".builtin", "no built-in robot %q that a worker could run", o.Builtin)
		}
	case len(o.Command) == 0:
		return y.Errorf(at, "expected builtin: or command:")
	case !filepath.IsAbs(o.Command[0]):
		return y.Errorf(at+".command", "expected the whole path of the program, not %q", o.Command[0])
	}
	if _, err := layout.ParseName(o.name()); err != nil {
		return y.Errorf(at, "%v", err)
	}
	if o.Instances < 0 {
		return y.Errorf(at+".instances", "expected a number from 1")
	}
	return nil
}

// name is by which name steps know the robot.
func (o Robot) name() string {
	switch {
	case o.Builtin != "":
		return o.Builtin
	case o.Name != "":
		return o.Name
	}
	return filepath.Base(o.Command[0])
}

// fill sets what the file leaves open.
func (c *Config) fill(key layout.Name) error {
	if c.Name == "" {
		c.Name = string(key)
	}
	if layout.Name(c.Name) != key {
		return fmt.Errorf("worker.yaml names this worker %s, and the key is that of %s", c.Name, key)
	}
	if c.Slots == 0 {
		c.Slots = runtime.NumCPU()
	}
	if c.Folder == "" {
		c.Folder = filepath.Join(os.TempDir(), "bagpipe-worker-"+c.Name)
	}
	return os.MkdirAll(c.Folder, 0o700)
}

// offered are the robots as the engine is told. A program that is not there is an error: the
// worker would take steps and fail them.
func (c *Config) offered(build string, builtins map[layout.Name]steps.Builtin) (all []wire.Robot, err error) {
	for _, o := range c.Robots {
		told := wire.Robot{Name: layout.Name(o.name()), Builtin: o.Builtin != "", Version: o.Version, Instances: o.Instances, Parameters: o.Parameters}
		if told.Builtin {
			told.Version, told.Takes = build, builtins[told.Name].Parameters
		} else if told.Digest, err = digestOf(o.Command[0]); err != nil {
			return nil, fmt.Errorf("robot %s: %w", told.Name, err)
		}
		all = append(all, told)
	}
	return all, nil
}

// Startable refuses a configuration of which a robot's program cannot be started.
func (c *Config) Startable() error {
	_, err := c.offered("", nil)
	return err
}

func digestOf(program string) (sum string, err error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", steps.WhyNotStarted(program, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// robot finds what a call asks for.
func (c *Config) robot(name layout.Name) (o Robot, ok bool) {
	i := slices.IndexFunc(c.Robots, func(o Robot) bool { return o.name() == string(name) })
	if i < 0 {
		return o, false
	}
	return c.Robots[i], true
}
