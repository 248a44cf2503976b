package cli

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Complete writes a script that completes commands, flags and the words of a project in a shell (bash, zsh or fish), or
// the manual page (man). For a placeholder of Words, such as ADDRESS, the script asks the program: PROGRAM completion
// -words ADDRESS prints one word a line.
func (t *Table) Complete(w io.Writer, shell string) error {
	switch shell {
	case "bash":
		return t.bash(w)
	case "zsh":
		if _, err := fmt.Fprint(w, "#compdef ", t.Program,
			"\nautoload -U +X bashcompinit && bashcompinit\n"); err != nil {
			return err
		}
		return t.bash(w)
	case "fish":
		return t.fish(w)
	case "man":
		return t.manual(w)
	}
	return usage("name bash, zsh, fish or man", "completion: no script for %q%s", shell,
		Suggest(shell, []string{"bash", "zsh", "fish", "man"}))
}

func spellings(fs *flag.FlagSet) []string {
	var all []string
	fs.VisitAll(func(f *flag.Flag) { all = append(all, "-"+f.Name) })
	return all
}

// wanted returns the placeholder of Words in the arguments of a command; "" if they are files, or if there are none.
func (t *Table) wanted(args string) string {
	for word := range strings.FieldsFuncSeq(args, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if slices.Contains(t.Words, word) {
			return word
		}
	}
	return ""
}

// asking returns the flags of a set that take a word of the project, by placeholder.
func (t *Table) asking(fs *flag.FlagSet) map[string][]string {
	all := map[string][]string{}
	fs.VisitAll(func(f *flag.Flag) {
		if name, _ := flag.UnquoteUsage(f); slices.Contains(t.Words, name) {
			all[name] = append(all[name], "-"+f.Name)
		}
	})
	return all
}

func (t *Table) bash(w io.Writer) error {
	var names []string
	var cases strings.Builder
	for i := range t.Commands {
		c := &t.Commands[i]
		names = append(names, c.Name)
		fs := t.flagsOf(c, flagSet(t.Global))
		fmt.Fprintf(&cases, "    %s) words='%s'; wanted='%s'\n", c.Name, strings.Join(spellings(fs), " "),
			t.wanted(c.Args))
		asking := t.asking(fs)
		for _, name := range slices.Sorted(maps.Keys(asking)) {
			fmt.Fprintf(&cases, "      case $flag in %s) wanted=%s; cur=${cur#=} ;; esac\n",
				strings.Join(asking[name], "|"), name)
		}
		fmt.Fprintln(&cases, "      ;;")
	}
	_, err := fmt.Fprintf(w, `_%[1]s() {
  local cur command word words wanted flag global args i IFS=$' \t\n'
  cur=${COMP_WORDS[COMP_CWORD]}
  command= wanted= global=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      =) [ ${#global[@]} -gt 0 ] && global[${#global[@]}-1]+== ;;
      -*) global+=("$word") ;;
      *) case ${global[*]: -1} in *=) global[${#global[@]}-1]+=$word ;; *) command=$word; break ;; esac ;;
    esac
  done
  args=()
  for ((i = COMP_CWORD - 1; i > 0; i--)); do
    word=${COMP_WORDS[i]}
    case $word in "$command") break ;; -*|=) ;; *) args=("$word" "${args[@]}") ;; esac
  done
  flag=${COMP_WORDS[COMP_CWORD-1]}
  if [ "$flag" = = ]; then flag=${COMP_WORDS[COMP_CWORD-2]}; elif [ "$cur" = = ]; then cur=; fi
  case $flag in --*) flag=${flag#-} ;; esac
  case $command in
    '') words='%[2]s help %[3]s' ;;
    help) words='%[2]s' ;;
%[4]s    *) words= ;;
  esac
  case $cur in
    -*) ;;
    *) if [ -n "$wanted" ]; then
         words=$(%[1]s "${global[@]}" completion -words "$wanted" -- "${args[@]}" 2>/dev/null)
       elif [ -n "$command" ] && [ "$command" != help ]; then
         COMPREPLY=($(compgen -f -- "$cur")); return
       fi ;;
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
	ask := func(name string) string { // with the arguments between the command and the cursor
		return fmt.Sprintf(` -a '(%s completion -words %s -- (commandline -opc | string match -v -- "-*")[3..-1] `+
			`2>/dev/null)'`, t.Program, name)
	}
	for i := range t.Commands {
		c := &t.Commands[i]
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -f -a %s -d %s\n", t.Program, c.Name, quote(c.Summary))
		if name := t.wanted(c.Args); name != "" {
			fmt.Fprintf(&b, "complete -c %s -n '__fish_seen_subcommand_from %s' -f%s\n", t.Program, c.Name, ask(name))
		}
		flagSet(c.Flags).VisitAll(func(f *flag.Flag) {
			name, text := flag.UnquoteUsage(f)
			values := ""
			if slices.Contains(t.Words, name) {
				values = " -x" + ask(name)
			}
			fmt.Fprintf(&b, "complete -c %s -n '__fish_seen_subcommand_from %s' -o %s -d %s%s\n", t.Program, c.Name,
				f.Name, quote(text), values)
		})
	}
	flagSet(t.Global).VisitAll(func(f *flag.Flag) {
		_, text := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "complete -c %s -o %s -d %s\n", t.Program, f.Name, quote(text))
	})
	_, err := io.WriteString(w, b.String())
	return err
}
