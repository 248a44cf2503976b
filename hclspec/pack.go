package hclspec

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

// packPrefix is the prefix, in diagnostics, of the names of files that are part of the program.
const packPrefix = "pack:"

// knownRules is the file of a pack that projects do not read: its failure rules apply to every project.
const knownRules = "failures.hcl"

// readPacks reads the packs that the root file's benchgraph block names: from the directory packs/NAME beside the root
// file, or else from the program.
func (l *loader) readPacks(root string) {
	settings := l.blocksOf("benchgraph")
	if len(settings) == 0 || settings[0].Attrs["packs"] == nil {
		return
	}
	r := l.constant(settings[0])
	names := r.Strs("packs")
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
			r.Fail(r.AtItem("packs", i), "Duplicate pack", "The pack %q is named twice.", name)
		case !hclsyntax.ValidIdentifier(name) || !l.readOwnPack(path.Join(path.Dir(root), "packs", name)) &&
			!l.readKnownPack(name):
			r.Fail(r.AtItem("packs", i), "Unknown pack",
				"There is no pack %q, and no directory packs/%s with HCL files beside %s.%s",
				name, name, root, diag.Choices(name, l.knownPacks()))
			l.scope.Partial = true
		}
	}
	l.replacePacks()
}

// readOwnPack reads the files of a pack in the project. It returns false if there are none.
func (l *loader) readOwnPack(dir string) bool {
	names, err := l.dir.List(dir)
	found := false
	for _, name := range names {
		if name = path.Join(dir, name); err == nil && strings.HasSuffix(name, ".hcl") {
			found = true
			l.packFiles[name] = true
			if !slices.Contains(l.names, name) { // false: the project includes it
				l.readFile(name)
			}
		}
	}
	return found
}

// readKnownPack reads the files of a pack of the program. It returns false if there is none of that name.
func (l *loader) readKnownPack(name string) bool {
	if !slices.Contains(l.knownPacks(), name) {
		return false
	}
	entries, err := fs.ReadDir(l.options.Packs, name)
	for _, entry := range entries {
		var src []byte
		if file := path.Join(name, entry.Name()); err == nil && entry.Name() != knownRules {
			if src, err = fs.ReadFile(l.options.Packs, file); err == nil {
				l.packFiles[packPrefix+file] = true
				l.parseFile(src, packPrefix+file)
			}
		}
	}
	return err == nil
}

// knownPacks returns the names of the packs of the program.
func (l *loader) knownPacks() []string {
	if l.options.Packs == nil {
		return nil
	}
	var names []string
	entries, _ := fs.ReadDir(l.options.Packs, ".") // no packs in case of an error
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// replacePacks removes the blocks and local values of packs that the project declares itself.
func (l *loader) replacePacks() {
	type id struct{ kind, name string }
	own := map[id]bool{}
	for _, b := range l.blocks {
		if l.packFiles[b.Range.Filename] {
			continue
		}
		if b.Schema.Kind != "locals" {
			own[id{b.Schema.Kind, b.Name}] = true
			continue
		}
		for name := range b.Attrs {
			own[id{"local", name}] = true
		}
	}
	l.blocks = slices.DeleteFunc(l.blocks, func(b *eval.Block) bool {
		if !l.packFiles[b.Range.Filename] {
			return false
		}
		for name := range b.Attrs {
			if b.Schema.Kind == "locals" && own[id{"local", name}] {
				delete(b.Attrs, name)
			}
		}
		return b.Schema.Label && own[id{b.Schema.Kind, b.Name}]
	})
}
