package executor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Unsupported is the error for a command that needs a feature which the executor does not have.
type Unsupported struct {
	What   string // the feature
	Remedy string // how to do without it
}

func (e *Unsupported) Error() string { return e.What + "; " + e.Remedy }

// StartError is the error for a program that could not be started.
type StartError struct {
	Program string // argv[0]
	Reason  string // why the program did not start
	Remedy  string // may be empty
	Passing bool   // a later start may succeed: the machine was short of something, or the cause is not known
	Err     error  // cause; may be nil
}

func (e *StartError) Error() string {
	if e.Remedy == "" {
		return e.Program + ": " + e.Reason
	}
	return e.Program + ": " + e.Reason + "; " + e.Remedy
}

func (e *StartError) Unwrap() error { return e.Err }

// resolve checks cmd and returns the path of its program.
func resolve(cmd Command) (string, error) {
	if err := cmd.Check(); err != nil {
		return "", err
	}
	name := cmd.Argv[0]
	if err := checkDir(name, cmd.Dir); err != nil {
		return "", err
	}
	if strings.ContainsRune(name, filepath.Separator) {
		path := below(cmd.Dir, name)
		if err := executable(path); err != nil {
			return "", explain(cmd, path, err)
		}
		return path, nil
	}
	return lookPath(name, cmd)
}

// Check returns a *StartError if a command names no program, or has a NUL byte in an argument or a variable.
func (cmd Command) Check() error {
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return &StartError{Program: "command", Reason: "is empty", Remedy: "name a program", Err: syscall.EINVAL}
	}
	for _, text := range [][]string{cmd.Argv, cmd.Env} {
		for _, s := range text {
			if strings.ContainsRune(s, 0) {
				return &StartError{Program: cmd.Argv[0], Reason: fmt.Sprintf("NUL byte in %.40q", s),
					Remedy: "pass such data in a file", Err: syscall.EINVAL}
			}
		}
	}
	return nil
}

func checkDir(name, dir string) error {
	if !filepath.IsAbs(dir) {
		return &StartError{Program: name, Reason: fmt.Sprintf("working directory %q is not an absolute path", dir),
			Err: syscall.EINVAL}
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "stat", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return &StartError{Program: name, Reason: "working directory: " + err.Error(),
			Remedy: "make the directory first", Passing: true, Err: err}
	}
	return nil
}

// shell is the program of most commands. Its path is cached in shells by PATH and used while the file exists. Other
// programs, such as python3, are looked up each time: a task may install one in an earlier directory of PATH.
const shell = "sh"

var shells sync.Map // PATH → path of the shell

// lookPath returns the path of the program name. It searches as a shell with cmd's environment and directory does.
func lookPath(name string, cmd Command) (string, error) {
	list, ok := valueOf(cmd.Env, "PATH")
	if !ok {
		return "", &StartError{Program: name, Reason: "cannot be looked up: the command's environment has no PATH",
			Remedy: "set PATH or give the program's whole path", Err: fs.ErrNotExist}
	}
	if known, ok := shells.Load(list); ok && name == shell && executable(known.(string)) == nil {
		return known.(string), nil
	}
	var denied string
	everywhere := true // the PATH means the same directories for every Dir
	for _, dir := range filepath.SplitList(list) {
		everywhere = everywhere && filepath.IsAbs(dir)
		path := filepath.Join(below(cmd.Dir, dir), name)
		err := executable(path)
		if err == nil {
			if name == shell && everywhere {
				shells.Store(list, path)
			}
			return path, nil
		}
		if errors.Is(err, fs.ErrPermission) && denied == "" {
			denied = path
		}
	}
	if denied != "" {
		return "", explain(cmd, denied, fs.ErrPermission)
	}
	return "", &StartError{
		Program: name,
		Reason:  fmt.Sprintf("not found in PATH (%s)", list),
		Remedy:  "install it or add its directory to PATH",
		Err:     fs.ErrNotExist,
	}
}

// valueOf returns the value of a variable: the last one if env sets it more than once.
func valueOf(env []string, name string) (value string, ok bool) {
	for _, v := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return syscall.EISDIR
	case info.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}

// explain returns an error that says why the program at path could not be started.
func explain(cmd Command, path string, err error) error {
	e := &StartError{Program: cmd.Argv[0], Reason: err.Error(), Err: err}
	var other *fs.PathError
	switch {
	case errors.Is(err, syscall.EAGAIN):
		e.Passing = true
		e.Reason = "the limit of processes is reached"
		e.Remedy = "run fewer at a time, or raise the limit (ulimit -u)"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Passing = true
		e.Reason = "the limit of open files is reached"
		e.Remedy = "run fewer at a time, or raise the limit (ulimit -n)"
	case errors.As(err, &other) && other.Path == os.DevNull:
		e.Remedy = "this system has no devices: mount /dev"
	case errors.Is(err, syscall.E2BIG):
		e.Reason = fmt.Sprintf("argument list too long: %d bytes in %d arguments, %d bytes of environment",
			size(cmd.Argv), len(cmd.Argv), size(cmd.Env))
		e.Remedy = "pass the data in a file or on standard input"
	case errors.Is(err, syscall.EISDIR):
		e.Reason = path + " is a directory"
	case errors.Is(err, fs.ErrPermission):
		e.Reason = "permission denied: " + path + " cannot be executed"
		e.Remedy = "make it executable (chmod +x), and check that its file system is not mounted noexec"
	case errors.Is(err, syscall.ENOEXEC):
		e.Reason = path + " is neither a program for this machine nor a script with a #! line"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Reason = path + " does not exist"
		if line := interpreter(path); line != "" {
			e.Reason = fmt.Sprintf("%s needs the interpreter %q, which does not exist", path, line)
			e.Remedy = "install it or correct the #! line"
		}
	default:
		e.Passing = true
	}
	return e
}

func size(list []string) int {
	n := 0
	for _, s := range list {
		n += len(s) + 1
	}
	return n
}

// interpreter returns the interpreter in the #! line of a file. It returns "" if the file is not a script.
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 256)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	fields := bytes.Fields(rest)
	if !ok || len(fields) == 0 {
		return ""
	}
	return string(fields[0])
}
