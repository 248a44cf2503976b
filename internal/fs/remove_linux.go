package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// remover removes one tree. It uses descriptors and names relative to them, so it follows no links, and it enters no
// other mounts. The kernel refuses to remove a mount point.
type remover struct {
	parent int    // descriptor of the directory that holds the tree
	name   string // name of the tree in parent
	moved  int    // number of directories moved up
	left   []leftover
	more   bool // there are more leftovers than in left
	old    bool // the kernel lacks openat2, or a filter denies it
}

// leftover is a path that cannot be removed.
type leftover struct {
	path string
	err  error
}

const (
	deepest  = 256 // deepest level that is entered; deeper directories are moved up first
	mostLeft = 20  // largest number of reported leftovers
)

// errMounted is the reason for which a mount point stays.
var errMounted = errors.New("it is a mount point: unmount it first")

// errKept is the reason for which a directory stays that holds reported leftovers.
var errKept = errors.New("it holds what cannot be removed")

// removeTree is RemoveTree for Linux.
func removeTree(dir string) error {
	dir = filepath.Clean(dir)
	parent, err := unix.Open(filepath.Dir(dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(dir), Err: err}
	}
	defer unix.Close(parent)
	r := &remover{parent: parent, name: filepath.Base(dir)}
	r.remove(parent, r.name, dir, 0)
	var errs []error
	for _, l := range r.left {
		errs = append(errs, fmt.Errorf("%s: %w", l.path, l.err))
	}
	if r.more {
		errs = append(errs, errors.New("and more"))
	}
	return errors.Join(errs...)
}

// remove removes one name in a directory and reports whether it is gone. path is its path, for messages.
func (r *remover) remove(parent int, name, path string, depth int) bool {
	err := ignoringEINTR(func() error { return unix.Unlinkat(parent, name, 0) })
	if errors.Is(err, unix.EISDIR) {
		err = r.directory(parent, name, path, depth)
	}
	if errors.Is(err, unix.EBUSY) {
		err = errMounted
	}
	if err == nil || errors.Is(err, unix.ENOENT) {
		return true
	}
	known := errors.Is(err, errKept) || slices.ContainsFunc(r.left, func(l leftover) bool { return l.path == path })
	switch {
	case known:
	case len(r.left) < mostLeft:
		r.left = append(r.left, leftover{path, err})
	default:
		r.more = true
	}
	return false
}

// directory removes a directory and its content.
func (r *remover) directory(parent int, name, path string, depth int) error {
	rmdir := func() error {
		return ignoringEINTR(func() error { return unix.Unlinkat(parent, name, unix.AT_REMOVEDIR) })
	}
	if err := rmdir(); err == nil || errors.Is(err, unix.EBUSY) {
		return err
	}
	if depth >= deepest {
		return r.moveUp(parent, name)
	}
	fd, err := r.open(parent, name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// Read the names until none of them can be removed: removing names may hide others from the reader, and deep
	// directories are moved up into the top directory meanwhile.
	for {
		progress, err := r.below(fd, path, depth)
		if err != nil {
			return err
		}
		if err = rmdir(); !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return err
		}
		if !progress {
			return errKept
		}
	}
}

// below removes the names in an open directory, and reports whether that changed anything.
func (r *remover) below(fd int, path string, depth int) (progress bool, err error) {
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return false, err
	}
	buf := make([]byte, 8192)
	var names []string
	for {
		n, err := unix.Getdents(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return progress, err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			moved := r.moved
			gone := r.remove(fd, name, path+"/"+name, depth+1)
			progress = progress || gone || r.moved > moved
		}
	}
}

// open opens a directory on the same mount, for reading and changing its names.
func (r *remover) open(parent int, name string) (int, error) {
	fd, err := r.openAs(parent, name, unix.O_RDONLY)
	if err == nil && !writable(fd) {
		err = unix.EACCES
		unix.Close(fd)
	}
	if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return fd, err
	}
	// Entries are read-only, and so are the caches of some build tools.
	closed, err := r.openAs(parent, name, unix.O_PATH)
	if err != nil {
		return -1, err
	}
	// If this fails, the next open returns the error.
	_ = os.Chmod("/proc/self/fd/"+strconv.Itoa(closed), 0o700)
	unix.Close(closed)
	return r.openAs(parent, name, unix.O_RDONLY)
}

// writable reports whether the mode of a directory allows changing its names.
func writable(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&0o300 == 0o300
}

// openAs opens a directory; it follows no link and enters no other mount.
func (r *remover) openAs(parent int, name string, flags int) (fd int, err error) {
	flags |= unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if !r.old {
		how := unix.OpenHow{Flags: uint64(flags),
			Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH}
		err = ignoringEINTR(func() error { fd, err = unix.Openat2(parent, name, &how); return err })
		switch {
		case errors.Is(err, unix.EXDEV):
			return -1, errMounted
		case !errors.Is(err, unix.ENOSYS) && !(errors.Is(err, unix.EPERM) && flags&unix.O_PATH != 0):
			return fd, err
		}
		r.old = true
	}
	err = ignoringEINTR(func() error { fd, err = unix.Openat(parent, name, flags, 0); return err })
	if err != nil {
		return -1, err
	}
	inside, err := mountOf(fd)
	if err == nil {
		var outside string
		if outside, err = mountOf(parent); err == nil && inside != outside {
			err = errMounted
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// mountOf returns the number of an open file's mount. Two mounts of one file system have the same device number, but
// different mount numbers.
func mountOf(fd int) (string, error) {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strings.TrimSpace(id), nil
		}
	}
	return "", errors.New("the kernel does not say which mount it is in")
}

// moveUp moves a deep directory to the top of the tree, which is then read again: so a tree of any depth needs a
// limited number of descriptors.
func (r *remover) moveUp(parent int, name string) error {
	own, err := r.open(parent, name) // its ".." entry must be writable
	if err != nil {
		return err
	}
	unix.Close(own)
	top, err := r.open(r.parent, r.name)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	for {
		r.moved++
		err := ignoringEINTR(func() error { return unix.Renameat(parent, name, top, fmt.Sprintf(".deep-%d", r.moved)) })
		if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
}

func ignoringEINTR(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// MountsBelow returns the mount points at or below a directory. dir must be absolute and contain no links.
func MountsBelow(dir string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range bytes.Lines(text) {
		fields := bytes.SplitN(line, []byte(" "), 6)
		if len(fields) < 6 {
			continue
		}
		at := unescape(string(fields[4]))
		if at == dir || strings.HasPrefix(at, dir+"/") {
			found = append(found, at)
		}
	}
	return found, nil
}

// unescape decodes a path in mountinfo, where spaces and the like are three octal digits.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
