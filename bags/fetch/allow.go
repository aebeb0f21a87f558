package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// NotAllowedError says that a URL of fetch.txt is not among what is allowed.
type NotAllowedError struct{ What string }

// Error says what to allow.
func (e *NotAllowedError) Error() string {
	return e.What + " is not allowed to be fetched from; allow it first"
}

// Check reports whether the lists can be used.
func (a Allowed) Check() error {
	for _, h := range a.Hosts {
		name, port, _ := strings.Cut(strings.TrimPrefix(h, "*."), ":")
		if name == "" || strings.ContainsAny(name, "*/@ ") || strings.ContainsAny(port, "*/@: ") {
			return fmt.Errorf("host %q: want example.org, example.org:8080 or *.example.org", h)
		}
	}
	for _, f := range a.Folders {
		if !filepath.IsAbs(f) {
			return fmt.Errorf("folder %q: want an absolute path", f)
		}
	}
	return nil
}

// host reports whether an http or https URL may be fetched.
func (a Allowed) host(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return &NotAllowedError{"the scheme " + u.Scheme}
	}
	if u.User != nil {
		return &NotAllowedError{"a URL with a password"}
	}
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		port = ""
	}
	for _, pattern := range a.Hosts {
		name, wantPort, _ := strings.Cut(strings.ToLower(pattern), ":")
		below, isBelow := strings.CutPrefix(name, "*")
		if port == wantPort && (host == name || isBelow && strings.HasSuffix(host, below) && len(host) > len(below)) {
			return nil
		}
	}
	return &NotAllowedError{"the host " + u.Host}
}

// file opens a file URL's file below one of the folders.
func (a Allowed) file(u *url.URL) (io.ReadCloser, error) {
	if u.Host != "" && u.Host != "localhost" {
		return nil, &NotAllowedError{"the host " + u.Host}
	}
	p := filepath.Clean(filepath.FromSlash(u.Path))
	for _, folder := range a.Folders {
		rel, err := filepath.Rel(folder, p)
		if err != nil || !filepath.IsAbs(p) || !filepath.IsLocal(rel) {
			continue
		}
		return openBelow(folder, rel)
	}
	return nil, &NotAllowedError{"the file " + p}
}

// openBelow opens a regular file, following no link out of the folder.
func openBelow(folder, rel string) (_ io.ReadCloser, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", rel), err, f.Close())
	}
	return f, nil
}
