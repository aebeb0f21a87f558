// Package bags reads, checks and writes BagIt bags (RFC 8493, reading 0.93 to
// 0.97 as well) and the archives content arrives in. It trusts nothing it
// unpacks.
//
// It owns the recognition of archives (Sniff), their extraction (Extract), the
// listing and hashing of folders (Scan, Hash), and bags: Validate, Create,
// FindBag. It must not know items, steps or workspaces. It keeps no state; each
// call starts its own goroutines, bounded by Workers, and waits for them.
//
// # Two kinds of error
//
// What is wrong with the archive or the content is an *Error: it names the
// archive, the member (percent-encoded) and the Rule that was broken. Every
// other error is about the machine: a disk that cannot be read or is full.
// Validate keeps the same line: what is wrong with the bag is a Finding in its
// Report, and its error return is about the machine alone.
//
// # Archives
//
//	format                read by                                     written
//	zip                   klauspost/compress, members on all cores    yes
//	tar                   archive/tar: ustar, pax, GNU, sparse, v7    yes
//	tar.gz, tar.zst       klauspost/compress, read ahead              yes
//	tar.bz2               compress/bzip2                              no
//	tar.xz                therootcompany/xz                           no
//	tar.lz4               pierrec/lz4                                 no
//	7z, 7z.001            bodgit/sevenzip, in a process of its own    no
//	rar 1.5 to 5, parts   nwaples/rardecode, in a process of its own  no
//
// Within zips: stored, deflate, bzip2, zstd, xz. Within 7z: copy, LZMA, LZMA2,
// PPMd, bzip2, deflate, zstd, brotli, LZ4, and the filters delta, BCJ, BCJ2, ARM,
// ARM64, PPC, SPARC. Every other method is refused by its name (deflate64, LZMA in
// zips, …), and so is what is encrypted.
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
// it says; and when data follows the archive's end or its end is missing. (Tars
// without an end mark and rars of before RAR 3 without an end block are written by
// some programs; that is a warning. So are bytes in a zip that belong to no member,
// unless they are a member that its directory does not list.) Names that differ
// only by case or by Unicode normalisation are kept and warned about, as are names
// that Windows cannot hold, and backslashes in tars, where they are ordinary
// characters. Names in no known encoding are read in their code page (codepage.go).
// Permissions keep only the execute bits; modification times, empty folders and the
// holes of sparse files are kept. Nothing is synced by Extract (the caller syncs the
// tree once and then publishes it); ExtractTo and Pack do both (publish.go).
//
// Inspect reads an archive by the same rules and writes nothing; it reads on after
// a member's broken rule and lists them all. ExtractNested unpacks what is packed in
// a folder (nested.go).
//
// A program that unpacks 7z or rar begins with Reader: the process that reads them
// is that program again (reader.go, frames.go). It has the archive's files, a bound
// on its memory (Limits.Memory) and no right to write; it decodes, and everything
// is checked by its parent.
//
// # Bags
//
// Each requirement of RFC 8493 and the finding that reports it:
//
//	2      base directory holds bagit.txt, a manifest, data/   no-declaration, no-manifest, no-payload
//	2.1.1  bagit.txt: two lines, order, no BOM, known version  declaration-syntax, declaration-bom, version, encoding
//	2.1.3  every payload file once in every manifest (1.0)     unlisted, duplicate
//	2.1.3  CHECKSUM FILEPATH, hexadecimal of the right length  manifest-syntax, digest-syntax
//	2.1.3  no file outside data/, no folders                   outside-payload, unsafe-path, lists-folder
//	2.1.3  CR, LF, % percent-encoded                           percent
//	2.2.1  tag manifests list every payload manifest           manifest-untagged
//	2.2.1  … no tag manifest and no payload file               lists-tag-manifest, lists-payload
//	2.2.2  bag-info.txt: label, colon, space, value            info-syntax
//	2.2.2  Payload-Oxum: form, once, right                     oxum-syntax, oxum-repeated, oxum
//	2.2.3  fetch.txt: url length path; payload files only      fetch-syntax, fetch-path
//	2.2.3  … listed in every payload manifest                  fetch-unlisted
//	2.3    text in the declared encoding, no BOM in UTF-8      encoding, bom
//	2.4    manifests named by a known algorithm                algorithm, weak-algorithm
//	3      every file listed is there; every digest matches    missing, unfetched, mismatch
//	5      nothing outside of the bag is touched               link, special-file, unsafe-path
//
// rules_test.go breaks each of them, and names its section. A finding is an error where the RFC says MUST and the declared version knew
// the rule, a warning otherwise. Complete and Valid are separate answers
// (section 3): a bag is complete when no error but mismatch was found, and valid
// when nothing was found and every digest was computed.
package bags
