package files

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openDisk opens a folder of the operating system. It opens nothing else, so no FIFO holds it up.
func openDisk(path string) (r folderReader, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return r, err
	}
	examine := func(d fs.DirEntry) (info, error) { return examineIn(f, d) }
	return folderReader{f, examine}, nil
}

// examineIn examines an entry by the folder's descriptor: the kernel looks for a name, not for a path.
func examineIn(f *os.File, d fs.DirEntry) (info, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if d.Type()&fs.ModeSymlink != 0 {
		flags = 0
	}
	var st unix.Stat_t
	err := error(unix.EINTR)
	for err == unix.EINTR {
		err = unix.Fstatat(int(f.Fd()), d.Name(), &st, flags)
	}
	if err != nil {
		return info{}, err
	}
	kind := st.Mode & unix.S_IFMT
	return info{
		isFolder:  kind == unix.S_IFDIR,
		isRegular: kind == unix.S_IFREG,
		time:      int64(st.Mtim.Sec),
		version:   versionOf(st.Mtim.Nano(), st.Ctim.Nano(), st.Size, st.Ino),
	}, nil
}
