package content

import "golang.org/x/sys/unix"

// networkTypes are the statfs types of file systems whose clock may be another
// machine's and whose changes by others inotify does not see.
var networkTypes = map[int64]bool{
	unix.NFS_SUPER_MAGIC:  true,
	unix.SMB_SUPER_MAGIC:  true,
	unix.CIFS_SUPER_MAGIC: true,
	unix.SMB2_SUPER_MAGIC: true,
	unix.FUSE_SUPER_MAGIC: true, // sshfs, s3fs, virtiofs and their like
	unix.V9FS_MAGIC:       true,
	unix.CEPH_SUPER_MAGIC: true,
	unix.AFS_SUPER_MAGIC:  true,
	unix.CODA_SUPER_MAGIC: true,
	0x0BD00BD0:            true, // Lustre
	0x47504653:            true, // GPFS
	0x786f4256:            true, // VirtualBox shared folder
	0x7461636f:            true, // OCFS2
	0x01161970:            true, // GFS2
}

// IsNetwork tells whether dir lies on such a file system. Where that cannot be
// told it counts as one: that is the slower and safer answer.
func IsNetwork(dir string) bool {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return true
	}
	return networkTypes[int64(uint32(s.Type))]
}
