package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// help lists the commands.
func (t *Table) help(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\nUsage: %s [global flags] COMMAND [flags] [arguments]\n\nCommands:\n", t.Summary, t.Program)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, c := range t.Commands {
		fmt.Fprintf(table, "  %s\t%s\n", c.Name, c.Summary)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(w, "\nGlobal flags, before or after the command:\n")
	if err := flags(w, flagSet(t.Global)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s", t.Footer)
	return err
}

func (t *Table) helpOf(w io.Writer, c *Command) error {
	line := strings.TrimRight(fmt.Sprintf("%s %s [flags] %s", t.Program, c.Name, c.Args), " ")
	fmt.Fprintf(w, "%s: %s\n\nUsage: %s\n", c.Name, c.Summary, line)
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.Long))
	}
	own := flagSet(c.Flags)
	if count(own) > 0 {
		fmt.Fprint(w, "\nFlags:\n")
		if err := flags(w, own); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\nThe global flags are listed by %s -help.\n", t.Program)
	return err
}

func count(fs *flag.FlagSet) int {
	n := 0
	fs.VisitAll(func(*flag.Flag) { n++ })
	return n
}

// flags lists flags as they are written.
func flags(w io.Writer, fs *flag.FlagSet) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fs.VisitAll(func(f *flag.Flag) {
		spelling, text := spelled(f)
		fmt.Fprintf(table, "  %s\t%s\n", spelling, text)
	})
	return table.Flush()
}

// spelled returns how a flag is written, and what it does.
func spelled(f *flag.Flag) (spelling, text string) {
	value, text := flag.UnquoteUsage(f)
	if spelling = "-" + f.Name; value != "" {
		spelling += "=" + value
	}
	return spelling, text
}
