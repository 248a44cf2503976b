package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"runtime"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/bundle"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/format"
)

// version is the present release, or the next one.
const version = "0.1.0"

func (a *app) version() cli.Command {
	asJSON := false
	return cli.Command{
		Name: "version", Summary: "print the version",
		Flags: func(fs *flag.FlagSet) { a.jsonFlag(fs, &asJSON) },
		Run: func(context.Context, []string) error {
			revision, platform := revision(), runtime.GOOS+"/"+runtime.GOARCH
			if asJSON {
				return view.JSON(a.stdout, map[string]any{"format": view.Format, "version": version,
					"revision": revision, "go": runtime.Version(), "platform": platform})
			}
			_, err := fmt.Fprintf(a.stdout, "benchgraph %s (revision %s, %s, %s)\n", version, revision,
				runtime.Version(), platform)
			return err
		},
	}
}

func (a *app) metadata() cli.Command {
	return cli.Command{
		Name: "metadata", Summary: "print the language as JSON: attributes, functions, formats of outputs",
		Flags: func(fs *flag.FlagSet) { a.jsonFlag(fs, new(bool)) }, // as for other commands
		Run: func(context.Context, []string) error {
			return view.JSON(a.stdout, map[string]any{"format": view.Format, "attributes": hclspec.Attributes(),
				"functions": hclspec.Functions(), "formats": format.Names()})
		},
	}
}

// revision returns the revision that this program was built from; "unknown" if the build does not say.
func revision() string {
	of, _ := bundle.Source()
	return cmp.Or(of, "unknown")
}
