// Package target owns the places where bags are deposited: folders, SFTP servers and S3
// buckets, each in one of the layouts bag, tar and ocfl. It puts, checks and gets copies.
//
// It must not know items' records, workflows or the engine: it is given a bag and where it
// belongs, and answers with what the copy's record says. It alone imports minio-go,
// pkg/sftp and ocfl-go. A Target may be used by several goroutines; the connections it keeps are guarded
// by their own locks.
//
// # Order of writing
//
// Bytes first, the pointer last, everywhere:
//
//   - where files can be renamed (a folder, SFTP), a copy is made under a name that begins with
//     a dot and ends with the target's token, read back, and renamed; what stands under its own name is whole.
//     The next put takes the part that another left, dead or alive, and whoever lost its part waits;
//   - where they cannot (S3), bagit.txt is written last, and the copy read back before: a bag
//     without its bagit.txt is none, and the next attempt goes on with it.
//
// Nothing that stands under its own name is overwritten. A crash leaves what the next put of
// the same bag finishes: files that are there are compared, not sent again.
//
// # Where a copy stands
//
//	bag   3/f/a/9/ID/…          version 2: 3/f/a/9/ID-v2, its first revision 3/f/a/9/ID-v2-r2
//	tar   3/f/a/9/ID.tar        one folder ID in it, tag files first, no owners, no times
//	ocfl  where the storage root's layout puts the object bagpipe:ID, see layout_ocfl.go
//
// A revision is a bag of the same payload with other tag files. A bag that differs from the
// one there in the labels of its making alone is that bag.
//
// # Secrets
//
// Each comes from where its key in the settings says, {env: NAME} or {file: PATH}; else from
// the file that secrets: names, YAML with accessKey, secretKey, sessionToken, passphrase and
// token, which its owner alone may read; or from the environment, BAGPIPE_NAME_ACCESS_KEY,
// _SECRET_KEY, _SESSION_TOKEN, _PASSPHRASE and _TOKEN, NAME being the target's in capitals
// with _ for every other sign. No error holds one.
package target
