package funcs

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"hash"
	"io/fs"
	"path"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

func files(dir *project.Dir) map[string]function.Function {
	return map[string]function.Function{
		"abspath": ofString("path", func(name string) (string, error) {
			return dir.Absolute(name), nil
		}),
		"file": ofString("path", func(name string) (string, error) {
			raw, err := dir.Read(name)
			if err != nil {
				return "", err
			}
			return text(raw)
		}),
		"filebase64": ofString("path", func(name string) (string, error) {
			raw, err := dir.Read(name)
			return base64.StdEncoding.EncodeToString(raw), err
		}),
		"filemd5":    hashOf(dir, md5.New),
		"filesha1":   hashOf(dir, sha1.New),
		"filesha256": hashOf(dir, sha256.New),
		"filesha512": hashOf(dir, sha512.New),
		"fileexists": fileExists(dir),
		"fileset":    fileSet(dir),
	}
}

// hashOf returns the function that hashes the content of a file, which need not be text.
func hashOf(dir *project.Dir, algorithm func() hash.Hash) function.Function {
	return ofString("path", func(name string) (string, error) {
		raw, err := dir.Read(name)
		return hashed(algorithm)(string(raw)), err
	})
}

func fileExists(dir *project.Dir) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			_, err := dir.Size(args[0].AsString())
			if errors.Is(err, fs.ErrNotExist) {
				return cty.False, nil
			}
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.True, nil
		},
	})
}

// fileSet returns names relative to its first argument, as Terraform's does.
func fileSet(dir *project.Dir) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "pattern", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Set(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			base, err := project.Clean(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			found, err := dir.Glob(path.Join(base, args[1].AsString()))
			if err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			var names []cty.Value
			for _, name := range found {
				if base != "." {
					name = strings.TrimPrefix(name, base+"/")
				}
				names = append(names, cty.StringVal(name))
			}
			if names == nil {
				return cty.SetValEmpty(cty.String), nil
			}
			return cty.SetVal(names), nil
		},
	})
}
