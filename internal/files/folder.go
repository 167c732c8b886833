package files

import (
	"io/fs"
	"math/bits"
	"path"
	"syscall"
)

// folderReader reads the entries of a folder.
type folderReader struct {
	fs.ReadDirFile

	// examine examines an entry, or what it leads to if it is a link.
	examine func(fs.DirEntry) (info, error)
}

// openFS opens a folder of a file system.
func openFS(fsys fs.FS, folder string) (r folderReader, err error) {
	file, err := fsys.Open(folder)
	if err != nil {
		return r, err
	}
	var isFolder bool
	r.ReadDirFile, isFolder = file.(fs.ReadDirFile)
	if !isFolder {
		_ = file.Close()
		return r, syscall.ENOTDIR
	}
	r.examine = func(d fs.DirEntry) (info, error) {
		if d.Type()&fs.ModeSymlink != 0 {
			return infoOf(fs.Stat(fsys, path.Join(folder, d.Name())))
		}
		return infoOf(d.Info())
	}
	return r, nil
}

// info is what a scan needs to know of a file.
type info struct {
	isFolder  bool
	isRegular bool
	time      int64 // modification, Unix seconds
	version   uint32
}

// infoOf takes what the standard library tells of a file.
func infoOf(fi fs.FileInfo, err error) (info, error) {
	if err != nil {
		return info{}, err
	}
	t := fi.ModTime()
	return info{
		isFolder:  fi.IsDir(),
		isRegular: fi.Mode().IsRegular(),
		time:      t.Unix(),
		version:   versionOf(t.UnixNano(), 0, fi.Size(), 0),
	}, nil
}

// versionOf returns a hash of what tells the states of a file apart: a write or a replacement changes at least one of
// these, even if it sets the modification time back. The modification time alone misses a file that was put in place with its
// old time. Both times are in nanoseconds. It is never 0, and the same in each run of the program.
func versionOf(modified, changed, size int64, inode uint64) uint32 {
	// wyhash (https://github.com/wangyi-fudan/wyhash), with its numbers.
	h := fold(uint64(modified)^0xA0761D6478BD642F, uint64(changed)^0xE7037ED1A0B428DB)
	h = fold(h^uint64(size)^0x8EBC6AF09C88C6E3, inode^0x589965CC75374CC3)
	return max(uint32(h>>32)^uint32(h), 1)
}

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
