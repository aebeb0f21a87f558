package search

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// The rules are: SQLite leaves the last bytes of each page of the index free ("reserved space",
// https://www.sqlite.org/fileformat2.html). A file system of ours keeps there the CRC-32C of the rest and of the
// page's place, and a page that has another sum is damage, as SQLite itself does not see it in most. The file system is SQLite's
// own but for how a page of a database is read and written; journals have sums already.

const (
	pageBytes   = 8192 // of a page of the index
	sumBytes    = 4
	headerBytes = 100 // that SQLite reads first of all, to learn the size of a page
)

// The functions of SQLite's file system that are replaced, as SQLite calls them.
type (
	opener = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	reader = func(tls *libc.TLS, file, buf uintptr, n int32, offset sqlite3.Tsqlite3_int64) int32
)

// checked is the file system. SQLite has its functions by their addresses alone: it is never to be collected.
// What SQLite reads itself lies in memory of its own kind, which is never freed.
type checked struct {
	name string
	open opener

	mu  sync.Mutex          // guards own
	own map[uintptr]methods // of a database's file, by the address of those that SQLite gives it
}

type methods struct {
	at          uintptr // sqlite3.Tsqlite3_io_methods
	read, write reader
}

// checkedFiles registers the file system with SQLite, once in a process.
var checkedFiles = sync.OnceValues(func() (*checked, error) {
	tls := libc.NewTLS()
	defer tls.Close()
	if err := keepCaches(tls); err != nil {
		return nil, err
	}
	c := &checked{name: "bagpipe", own: map[uintptr]methods{}}
	name, err := libc.CString(c.name)
	own := sqlite3.Xsqlite3_vfs_find(tls, 0)
	if err != nil || own == 0 {
		return nil, errors.Join(errors.New("SQLite has no file system"), err)
	}
	ours, vfs, err := copied[sqlite3.Tsqlite3_vfs](tls, own)
	if err != nil {
		return nil, err
	}
	open := *(*opener)(unsafe.Pointer(&vfs.FxOpen))
	c.open = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
		rc := open(tls, vfs, name, file, flags, outFlags)
		if rc == sqlite3.SQLITE_OK && flags&sqlite3.SQLITE_OPEN_MAIN_DB != 0 {
			f := at[sqlite3.Tsqlite3_file](file)
			m, err := c.checking(tls, f.FpMethods)
			if err != nil {
				return sqlite3.SQLITE_NOMEM // SQLite closes what it was given
			}
			f.FpMethods = m
		}
		return rc
	}
	vfs.FxOpen, vfs.FzName = *(*uintptr)(unsafe.Pointer(&c.open)), name
	if rc := sqlite3.Xsqlite3_vfs_register(tls, ours, 0); rc != sqlite3.SQLITE_OK {
		return nil, fmt.Errorf("register a file system with SQLite: error %d", rc)
	}
	return c, nil
})

// keepCaches gives SQLite memory for the pages of some connections' caches, which all use in turn
// (https://www.sqlite.org/malloc.html, "Page Cache Memory"). It takes more where that does not do: from the kernel, three pages at a
// time, which takes as long as a short search does besides. It can be told before its first use in a process; later it goes on without.
func keepCaches(tls *libc.TLS) error {
	const slotBytes, connections = pageBytes + 512, 4 // a page has some 300 bytes of SQLite's own besides
	n := connections * cacheKiB << 10 / slotBytes
	memory := libc.Xmalloc(tls, libc.Tsize_t(n*slotBytes))
	if memory == 0 {
		return errors.New("there is no memory for SQLite's caches")
	}
	args := tls.Alloc(3 * 8)
	defer tls.Free(3 * 8)
	if sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_PAGECACHE, libc.VaList(args, memory, int32(slotBytes), int32(n))) != sqlite3.SQLITE_OK {
		libc.Xfree(tls, memory)
	}
	return nil
}

// checking gives the methods in place of SQLite's own.
func (c *checked) checking(tls *libc.TLS, own uintptr) (uintptr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.own[own]; ok {
		return m.at, nil
	}
	where, m, err := copied[sqlite3.Tsqlite3_io_methods](tls, own)
	if err != nil {
		return 0, err
	}
	m.FiVersion = 1 // no page is mapped into memory
	ours := methods{where, checkedReader(*(*reader)(unsafe.Pointer(&m.FxRead))), summingWriter(*(*reader)(unsafe.Pointer(&m.FxWrite)))}
	m.FxRead, m.FxWrite = *(*uintptr)(unsafe.Pointer(&ours.read)), *(*uintptr)(unsafe.Pointer(&ours.write))
	c.own[own] = ours
	return where, nil
}

// copied is a copy of what lies at an address of SQLite's, in memory of the same kind.
func copied[T any](tls *libc.TLS, of uintptr) (uintptr, *T, error) {
	p := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(*new(T))))
	if p == 0 {
		return 0, nil, errors.New("there is no memory for SQLite's file system")
	}
	v := at[T](p)
	*v = *at[T](of)
	return p, v, nil
}

func checkedReader(read reader) reader {
	return func(tls *libc.TLS, file, buf uintptr, n int32, offset sqlite3.Tsqlite3_int64) int32 {
		data := unsafe.Slice(at[byte](buf), n)
		if offset > 0 && offset%pageBytes == 0 && n < pageBytes {
			// SQLite reads pages of long values past its cache, and without their ends.
			return readBeginning(read, tls, file, data, offset)
		}
		rc := read(tls, file, buf, n, offset)
		switch {
		case rc == sqlite3.SQLITE_OK && n >= 512:
			if binary.LittleEndian.Uint32(data[n-sumBytes:]) != sumOf(data, offset) {
				return sqlite3.SQLITE_CORRUPT
			}
		case rc == sqlite3.SQLITE_IOERR_SHORT_READ && n == headerBytes && offset == 0 && allZero(data):
			// SQLite makes a new database as this says.
			binary.BigEndian.PutUint16(data[16:], pageBytes)
			data[20] = sumBytes
		}
		return rc
	}
}

// wholePages are pages that are read for their beginnings. What SQLite's functions write to is not to lie on the stack, which moves.
var wholePages = sync.Pool{New: func() any { return new([pageBytes]byte) }}

// readBeginning reads the beginning of a page.
func readBeginning(read reader, tls *libc.TLS, file uintptr, into []byte, offset int64) int32 {
	page := wholePages.Get().(*[pageBytes]byte)
	defer wholePages.Put(page)
	var pin runtime.Pinner
	pin.Pin(page)
	defer pin.Unpin()
	rc := read(tls, file, uintptr(unsafe.Pointer(page)), pageBytes, offset)
	if rc == sqlite3.SQLITE_IOERR_SHORT_READ || rc == sqlite3.SQLITE_OK && binary.LittleEndian.Uint32(page[pageBytes-sumBytes:]) != sumOf(page[:], offset) {
		return sqlite3.SQLITE_CORRUPT
	}
	copy(into, page[:])
	return rc
}

func summingWriter(write reader) reader {
	return func(tls *libc.TLS, file, buf uintptr, n int32, offset sqlite3.Tsqlite3_int64) int32 {
		if n >= 512 {
			data := unsafe.Slice(at[byte](buf), n)
			binary.LittleEndian.PutUint32(data[n-sumBytes:], sumOf(data, offset))
		}
		return write(tls, file, buf, n, offset)
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is the sum of a page at an offset.
func sumOf(page []byte, offset int64) uint32 {
	return crc32.Update(uint32(offset/pageBytes), castagnoli, page[:len(page)-sumBytes])
}

func allZero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// at is what lies at an address of SQLite's.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }
