// Package archive recognises, lists, checks, extracts and packs the archives content
// arrives in, and reads one where it stands (View). It trusts nothing it unpacks.
//
// It owns the formats below, the rules about members and the limits. It must not know
// bags. Its formats, and the process that reads 7z and rar, are internal packages below
// it. It keeps no state; each call starts its own goroutines, bounded by Workers, and
// waits for them. A sink's fields belong to the admitting goroutine, its meter to all.
//
//	format                read by                                     written
//	zip                   klauspost/compress, members on all cores    yes
//	tar                   archive/tar: ustar, pax, GNU, sparse, v7    yes
//	tar.gz, tar.zst       klauspost/compress, read ahead              yes
//	tar.bz2               compress/bzip2                              no
//	tar.xz                therootcompany/xz                           no
//	tar.lz4               pierrec/lz4                                 no
//	7z, 7z.001            bodgit/sevenzip, in a process of its own    no
//	rar 2 to 5, parts     nwaples/rardecode, in a process of its own  no
//
// Within zips: stored, deflate, bzip2, zstd, xz. Within 7z: copy, LZMA, LZMA2,
// PPMd, bzip2, deflate, zstd, brotli, LZ4, and the filters delta, BCJ, BCJ2, ARM,
// ARM64, PPC, SPARC. Every other method is refused by its name (deflate64, LZMA in
// zips, RAR 1.5, …), and so is what is encrypted.
//
// They are recognised by their first bytes; the name
// decides only where the bytes say nothing (a file called .zip without a zip
// signature is a damaged archive, not a loose file). Documents that are archives
// inside (.docx, .odt, .epub, .jar, .cbr …) are not delivery archives: one whose
// name has a document's extension, or a zip whose first member is "mimetype" or
// "[Content_Types].xml", is not unpacked. A compressed stream that does not hold a
// tar is a compressed file, not an archive.
//
// Extraction goes through os.Root into an empty folder. A member is refused, and
// with it the archive, when its name is absolute, has "..", a drive letter, a
// NUL or control character, or (zip) a backslash; when it is a link, device or
// FIFO; when two members have one name or a file stands where a folder is; when
// it is encrypted, uses another method, or overlaps another; when it breaks a
// limit (Limits); when it is truncated, fails its check sum or is not as long as
// it says; and when data follows the archive's end (zeros aside, in zip, 7z, rar, tar
// and gz) or its end is missing. (Tars
// without an end mark and rars of before RAR 3 without an end block are written by
// some programs; that is a warning. So are bytes in a zip that belong to no member,
// unless they are a member that its directory does not list.) Names that differ
// only by case or by Unicode normalisation are kept and warned about, as are names
// that Windows cannot hold, and backslashes in tars, where they are ordinary
// characters. Names in no known encoding are read in their code page (internal/codepage).
// Permissions keep only the execute bits; modification times, empty folders and the
// holes of sparse files are kept. Nothing is synced by Extract (the caller syncs the
// tree once and then publishes it); ExtractTo and Pack do both (files.Scratch).
//
// Inspect reads an archive by the same rules and writes nothing; it reads on after
// a member's broken rule and lists them all. ExtractNested unpacks what is packed in
// a folder (extract_nested.go).
//
// A program that unpacks 7z or rar begins with Reader: the process that reads them
// is that program again (internal/child, internal/frames). It has the archive's files, a bound
// on its memory (Limits.Memory) and no right to write; it decodes, and everything
// is checked by its parent.
package archive
