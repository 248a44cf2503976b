package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// Complete writes a script that completes commands and flags in a shell: bash, zsh or fish.
func (t *Table) Complete(w io.Writer, shell string) error {
	switch shell {
	case "bash":
		return t.bash(w)
	case "zsh":
		if _, err := fmt.Fprint(w, "#compdef ", t.Program, "\nautoload -U +X bashcompinit && bashcompinit\n"); err != nil {
			return err
		}
		return t.bash(w)
	case "fish":
		return t.fish(w)
	}
	return usage("name bash, zsh or fish", "completion: no script for %q%s", shell, Suggest(shell, []string{"bash", "zsh", "fish"}))
}

func spellings(fs *flag.FlagSet) []string {
	var all []string
	fs.VisitAll(func(f *flag.Flag) { all = append(all, "-"+f.Name) })
	return all
}

func (t *Table) bash(w io.Writer) error {
	var names []string
	var cases strings.Builder
	for i := range t.Commands {
		c := &t.Commands[i]
		names = append(names, c.Name)
		fmt.Fprintf(&cases, "    %s) words='%s' ;;\n", c.Name, strings.Join(spellings(t.flagsOf(c, flagSet(t.Global))), " "))
	}
	_, err := fmt.Fprintf(w, `_%[1]s() {
  local cur command word words
  cur=${COMP_WORDS[COMP_CWORD]}
  command=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*) ;; *) command=$word; break ;; esac
  done
  case $command in
    '') words='%[2]s help %[3]s' ;;
    help) words='%[2]s' ;;
%[4]s    *) words= ;;
  esac
  case $cur in
    -*) ;;
    *) if [ -n "$command" ] && [ "$command" != help ]; then COMPREPLY=($(compgen -f -- "$cur")); return; fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o filenames -F _%[1]s %[1]s
`, t.Program, strings.Join(names, " "), strings.Join(spellings(flagSet(t.Global)), " "), cases.String())
	return err
}

func (t *Table) fish(w io.Writer) error {
	var b strings.Builder
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }
	for i := range t.Commands {
		c := &t.Commands[i]
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -f -a %s -d %s\n", t.Program, c.Name, quote(c.Summary))
		flagSet(c.Flags).VisitAll(func(f *flag.Flag) {
			_, text := flag.UnquoteUsage(f)
			fmt.Fprintf(&b, "complete -c %s -n '__fish_seen_subcommand_from %s' -o %s -d %s\n", t.Program, c.Name, f.Name, quote(text))
		})
	}
	flagSet(t.Global).VisitAll(func(f *flag.Flag) {
		_, text := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "complete -c %s -o %s -d %s\n", t.Program, f.Name, quote(text))
	})
	_, err := io.WriteString(w, b.String())
	return err
}
