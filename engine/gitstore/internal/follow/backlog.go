package follow

import (
	"path"
	"slices"

	"bagpipe/engine/gitstore/internal/odb"
)

const (
	maxPaths = 20_000
	maxBytes = 24 << 20

	mostOfFolder = 16 // files that are written together
	mostFolders  = 16 // that are written side by side
	mostWriters  = 4
)

// pending is a file that is to be written.
type pending struct {
	data    []byte
	deleted bool
	from    odb.Hash // where the branch was before the path was first queued
	seq     uint64   // of the move that queued the path first
}

// backlog is the files to be written, by path. The follower's lock guards it.
type backlog struct {
	files map[string]*pending
	queue []string // the paths of files, oldest first
	bytes int      // of files
	batch int      // paths at the head of queue that have waited long enough
	seq   uint64   // moves added
}

func newBacklog() backlog { return backlog{files: map[string]*pending{}} }

// full reports whether the backlog holds more than a share of the most it may hold.
func (b *backlog) full(share int) bool {
	return len(b.files) >= maxPaths/share || b.bytes >= maxBytes/share
}

func (b *backlog) oldest() *pending { return b.files[b.queue[0]] }

// put queues a file, or gives the queued file its newer bytes.
func (b *backlog) put(path string, p *pending) {
	if old := b.files[path]; old != nil {
		b.bytes -= len(old.data)
		p.from, p.seq = old.from, old.seq
	} else {
		b.queue = append(b.queue, path)
	}
	b.files[path] = p
	b.bytes += len(p.data)
}

// putBack queues a file that could not be written, unless a newer one is queued.
func (b *backlog) putBack(path string, p *pending) {
	if b.files[path] == nil {
		b.files[path] = p
		b.bytes += len(p.data)
		b.queue = append([]string{path}, b.queue...)
	}
}

// take gives the oldest file, and forgets it.
func (b *backlog) take() (at string, p *pending) {
	at, p = b.queue[0], b.oldest()
	b.queue = b.queue[1:]
	b.batch--
	delete(b.files, at)
	b.bytes -= len(p.data)
	return at, p
}

// folder is files of one folder, and how writing each of them ended.
type folder struct {
	paths []string
	files []*pending
	errs  []error
}

// removes reports whether a file is to be deleted: what is written after it may stand in its place.
func (d *folder) removes() bool {
	return slices.ContainsFunc(d.files, func(p *pending) bool { return p.deleted })
}

// takeFolders gives the oldest files of the batch, as many folders as can be written side by side, and forgets them.
func (b *backlog) takeFolders() (folders []folder) {
	taken := map[string]bool{}
	for len(folders) < mostFolders && b.batch > 0 && !taken[path.Dir(b.queue[0])] {
		if len(folders) > 0 && b.oldest().deleted {
			break
		}
		d := b.takeFolder()
		folders = append(folders, d)
		if d.removes() {
			break
		}
		taken[path.Dir(d.paths[0])] = true
	}
	return folders
}

// takeFolder gives the oldest file, and those of its folder that are queued right behind it, and forgets them.
func (b *backlog) takeFolder() (d folder) {
	for len(d.paths) == 0 || len(d.paths) < mostOfFolder && b.batch > 0 && path.Dir(b.queue[0]) == path.Dir(d.paths[0]) {
		at, p := b.take()
		d.paths, d.files = append(d.paths, at), append(d.files, p)
	}
	d.errs = make([]error, len(d.files))
	return d
}

func (b *backlog) clear() {
	clear(b.files)
	b.queue, b.bytes, b.batch = nil, 0, 0
}
