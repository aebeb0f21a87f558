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
// zip, tar, tar.gz and tar.zst are recognised by their first bytes; the name
// decides only where the bytes say nothing (a file called .zip without a zip
// signature is a damaged archive, not a loose file). Documents that are zips
// inside (.docx, .odt, .epub, .jar …) are not delivery archives: a zip whose
// name has a document's extension, or whose first member is "mimetype" or
// "[Content_Types].xml", is not unpacked. A gzip or zstd stream that does not
// hold a tar is a compressed file, not an archive.
//
// Extraction goes through os.Root into an empty folder. A member is refused, and
// with it the archive, when its name is absolute, has "..", a drive letter, a
// NUL or control character, or (zip) a backslash; when it is a link, device or
// FIFO; when two members have one name or a file stands where a folder is; when
// it is encrypted, uses another method, or overlaps another; when it breaks a
// limit; when it is truncated, fails its check sum or is not as long as it says;
// and when data follows the archive's end or a zip's end is missing. (Tars without
// an end mark are written by some programs; that is a warning.) Names that differ only by case or by Unicode normalisation are kept and warned about, as
// are backslashes in tars, where they are ordinary characters. Permissions keep
// only the execute bits; modification times and empty folders are kept; nothing
// is synced (the caller syncs the tree once and then publishes it).
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
