package program

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/internal/sh"
)

func TestCommandsAreReadAsAShellDoes(t *testing.T) {
	vars := map[string]sh.Word{"MODEL": {Text: "org/m"}, "TOKEN": {Partial: true}}
	tests := []struct {
		name, text string
		want       []string // title and arguments of each program, "|" before what is only known when it runs
	}{
		{"plain", "python bench.py --model a/b", []string{"bench.py: --model a/b"}},
		{"variables before it", "VLLM_USE_V1=1 A='x y' python3 bench.py -n 1", []string{"bench.py: -n 1"}},
		{"absolute interpreter", "/usr/bin/python3.11 -u -X dev ./bench.py", []string{"./bench.py:"}},
		{"module", "python3 -m vllm.entrypoints.openai.api_server --port $PORT",
			[]string{"python -m vllm.entrypoints.openai.api_server: --port |$PORT"}},
		{"code is no script", `python3 -c 'print("x.py")'`, []string{"python3:"}},
		{"subcommands", "vllm bench serve --model x\nvllm serve org/m -tp 2",
			[]string{"vllm bench serve: --model x", "vllm serve: org/m -tp 2"}},
		{"continued lines", "python bench.py \\\n  --a 1 \\\n  --b 2", []string{"bench.py: --a 1 --b 2"}},
		{"quotes", `python "bench.py" --x="a b" '--y=c d' e\ f`, []string{"bench.py: --x=a b --y=c d e f"}},
		{"known variables", "python bench.py --model $MODEL --token ${TOKEN}",
			[]string{"bench.py: --model org/m --token |"}},
		{"own variables", "M=a/b; python bench.py --model \"${M}\"", []string{"bench.py: --model a/b"}},
		{"defaults", "python bench.py ${N:-5} ${PORT:-80}", []string{"bench.py: 5 |$PORT"}},
		{"substitution", "python bench.py --n $(nproc) --m `id -u`", []string{"bench.py: --n | --m |"}},
		{"wrappers", "exec env -u X A=1 timeout -s KILL 60 nohup python bench.py", []string{"bench.py:"}},
		{"numactl", "numactl --cpunodebind 0 -m 0 python bench.py", []string{"bench.py:"}},
		{"uv", "uv run --with torch python bench.py", []string{"bench.py:"}},
		{"torchrun", "torchrun --nproc-per-node 2 train.py --x", []string{"train.py: --x"}},
		{"another shell", `bash -lc "cd b && python bench.py"`, []string{"cd: b", "b/bench.py:"}},
		{"directories", "cd a && python bench.py; (cd b; python c.py); python d.py",
			[]string{"cd: a", "a/bench.py:", "cd: b", "a/b/c.py:", "a/d.py:"}},
		{"the working directory", "cd /tmp; cd $SRC/x && python y.py", []string{"cd: /tmp", "cd: \x03/x", "x/y.py:"}},
		{"redirections", "python bench.py > out.txt 2>&1 < in.txt &", []string{"bench.py:"}},
		{"here documents", "cat > f <<EOF\npython no.py --x\nEOF\npython yes.py", []string{"cat:", "yes.py:"}},
		{"comments", "# python no.py\npython yes.py # --no", []string{"yes.py:"}},
		{"pipes", "python bench.py --x | tee log", []string{"bench.py: --x", "tee: log"}},
		{"conditions", "if test -f x; then python a.py; fi; for i in 1 2; do python b.py $i; done",
			[]string{"test: -f x", "a.py:", "b.py: |"}},
		{"cases", "case $1 in a) python a.py;; *) python b.py;; esac", []string{"a.py:", "b.py:"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, ok := Read(Text{Shell: tt.text}, Offline, vars)
			if !ok {
				t.Error("not understood")
			}
			var got []string
			for _, p := range list {
				title := p.Title()
				if at, ok := p.Resolve(p.Script); ok && p.Script != "" && p.Dir != "" {
					title = at
				}
				var args []string
				for _, a := range p.Args {
					mark := ""
					if a.Partial {
						mark = "|"
					}
					args = append(args, mark+a.Text)
				}
				got = append(got, strings.TrimSuffix(title+": "+strings.Join(args, " "), " "))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestUnsetVariablesAreKnown(t *testing.T) {
	for text, want := range map[string]string{
		"run $MODEL":                          "MODEL",
		"run ${BS}":                           "BS",
		"run \"$X\" '$Y'":                     "X",
		"run $OUT $PORT $HOME $1 $@ $?":       "",
		"run ${MODEL:-x}":                     "",
		"MODEL=x; run $MODEL":                 "",
		"export MODEL=x && run $MODEL":        "",
		"read MODEL < f; run $MODEL":          "",
		"for m in a b; do run $m; done":       "",
		". ./env; run $ANYTHING":              "",
		"sh -c 'run $INNER'":                  "",
		"run $(echo $INNER)":                  "",
		"run price$ and 5$":                   "",
		"while read line; do run $line; done": "",
	} {
		list, _ := Read(Text{Shell: text}, Offline, nil)
		var got []string
		for _, p := range list {
			for _, w := range p.Words {
				got = append(got, w.Unset...)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestUnreadCommandsAreReported(t *testing.T) {
	for _, text := range []string{"f() { python b.py; }; f", "python <(cat x)",
		"echo 'never closed", "if true; then python b.py"} {
		if _, ok := Read(Text{Shell: text}, Offline, nil); ok {
			t.Errorf("%s: understood", text)
		}
	}
}

func FuzzCommand(f *testing.F) {
	f.Add("cd a && FOO=1 python3 -m x.y --model ${M:-z} \"$PORT\" > $OUT/x <<E\nE\n")
	f.Add("bash -c 'bash -c \"bash -c x\"'; (cd b) & | ${ $( ` ")
	f.Fuzz(func(t *testing.T, text string) {
		fuzzing.Frugal(t, len(text), func() {
			list, _ := Read(Text{Shell: text}, Offline, map[string]sh.Word{"M": {Text: "x"}})
			for _, p := range list {
				Flags(p.Args)
				p.Ranks()
				p.Resolve(p.Script)
			}
		})
	})
}
