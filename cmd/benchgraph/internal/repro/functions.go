package repro

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/internal/sh"
)

// verbs are the functions that steps may name. The other functions are internal to the script: they evaluate their
// arguments.
var verbs = []string{"cache", "checkout", "commit", "docker", "download", "empty", "file", "input", "lay",
	"missing", "patch", "pull", "text", "tree", "unpack"}

// functions are shell functions for the actions of benchgraph itself. A transcript names those in verbs.
var functions = map[string]string{
	"stored": `# stored DIR ADDRESS: the directory of a result.
stored() {
	[ -d "$1" ] || { echo "the result of $2 is gone: benchgraph apply -target '$2' makes it again" >&2; exit 1; }
	echo "$1"
}`,
	"engine": `# engine ID: the image that the node used.
engine() {
	docker image inspect --format '{{.Id}}' "$1" 2>/dev/null || {
		echo "image $1 is not in the engine, and one that is made again has another ID:" >&2
		echo "benchgraph apply -replace '$node' runs the node again, with a new image of the same contents" >&2
		exit 1
	}
}`,
	"tree":  `tree() { mkdir -p "$2"; cp -R "$1/." "$2"; chmod -R u+w "$2"; }`,
	"file":  `file() { mkdir -p "$(dirname "$2")"; cp "$1" "$2"; chmod u+w "$2"; }`,
	"cache": `cache() { mkdir -p "$2"; [ ! -d "$1" ] || { cp -pR "$1/." "$2"; chmod -R u+w "$2"; }; }`,
	"input": `# input FROM TO SHA256: a file of the project, as it was.
input() {
	same "$1" "$3"
	mkdir -p "$(dirname "$2")"; cp "$1" "$2"; chmod u+w "$2"
}`,
	"same": `same() {
	[ "$(sha256sum <"$1")" = "$2  -" ] || { echo "$1 has changed since, or is gone" >&2; exit 1; }
}`,
	"missing": `# missing SHA256 FILE: a file that the transcript does not hold.
missing() { echo "$2 is to be the file with SHA-256 $1: lay it there by hand" >&2; exit 1; }`,
	"text":     `text() { mkdir -p "$(dirname "$2")"; printf %s "$1" >"$2"; }`,
	"empty":    `empty() { rm -rf "$1"; mkdir -p "$1"; }`,
	"download": `download() { mkdir -p "$(dirname "$2")"; curl -fL -o "$2" "$1"; same "$2" "$3"; }`,
	"checkout": `# checkout MIRROR REVISION DIR
checkout() {
	[ -d "$1" ] || {
		echo "there is no $1, since the project was moved or cleaned:" >&2
		echo "benchgraph apply -replace '$node' runs the node again, and repro then has the new place" >&2
		exit 1
	}
	mkdir -p "$3"
	GIT_INDEX_FILE=$work/index git --git-dir="$1" read-tree "$2"
	GIT_INDEX_FILE=$work/index git --git-dir="$1" --work-tree="$3" checkout-index -a --prefix="$3/"
}`,
	"patch": `# patch DIR FILE SHA256
patch() { same "$2" "$3"; (cd "$1" && GIT_CEILING_DIRECTORIES=$work git apply "$2"); }`,
	"pull": `# pull NAME ID: the image, from its registry if the engine does not have it.
pull() {
	docker image inspect --format '{{.Id}}' "$2" 2>/dev/null || {
		docker pull -q "$1" >&2
		docker image inspect --format '{{.Id}}' "$1"
	}
}`,
	"lay": `# lay FROM PATH MODE: a file in the container that is to become an image.
lay() {
	rm -rf "$work/lay"; mkdir -p "$work/lay$(dirname "$2")"; cp "$1" "$work/lay$2"; chmod "$3" "$work/lay$2"
	tar -C "$work/lay" --owner=0 --group=0 -cf - ".$2" | docker cp - "$c:/"
}`,
	"unpack": `# unpack IMAGE WHEEL PATH: what is in a wheel, in the container that is to become an image.
unpack() {
	c=${c:-$(docker create --network none "$1" -)}
	rm -rf "$work/unpacked"; python3 -m zipfile -e "$2" "$work/unpacked"; docker cp -q "$work/unpacked/." "$c:$3"
}`,
	"commit": `# commit IMAGE OPTION ...: the image that the container c has become; without one, the same image.
commit() {
	c=${c:-$(docker create --network none "$1" -)}; shift
	docker commit "$@" "$c"; docker rm "$c" >/dev/null
}`,
	"alive": `alive() { eval "kill -0 \$server$1" || { echo "the server died: $work/server$1.log" >&2; exit 1; }; }`,
	"group": `# group COMMAND: the command as the first of a group of processes, which stop ends together.
group() {
	if command -v setsid >/dev/null; then exec setsid "$@"; fi
	exec perl -e 'setpgrp; exec @ARGV' -- "$@"
}`,
	"stop": `# stop SERVER: ends all processes of a server, once: its number may belong to another program later.
stop() {
	eval "first=\$server$1; server$1="
	[ -n "$first" ] || return 0
	docker rm -f "repro-$$-$1" >/dev/null 2>&1 || :
	kill -s TERM -- "-$first" 2>/dev/null || kill "$first" 2>/dev/null || :
	left=25
	while [ $left -gt 0 ] && kill -s 0 "$first" 2>/dev/null; do
		sleep 0.2
		left=$((left - 1))
	done
	kill -s KILL -- "-$first" 2>/dev/null || :
	wait "$first" 2>/dev/null || :
}
servers=
trap 'for s in $servers; do stop "$s"; done' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM`,
	"answers": `# answers URL: whether a server has this page.
answers() { curl --noproxy '*' -m 2 -fsS -o /dev/null "$1"; }`,
	"listens": `# listens PORT: whether a program listens on a port of this machine.
listens() {
	nc -z 127.0.0.1 "$1" 2>/dev/null ||
		grep -qi ": [0-9A-F]*:$(printf %04X "$1") [0-9A-F]*:0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null
}`,
	"unused": `# unused PORT: waits up to 2 s for a free port, since processes of a stopped server may still be ending.
unused() {
	left=10
	while listens "$1"; do
		[ $left -gt 0 ] ||
			{ echo "port $1 is in use: end the program that listens there, and run the script again" >&2; exit 1; }
		sleep 0.2
		left=$((left - 1))
	done
}`,
	"pattern": `# pattern OPTION ...: whether grep can search with these options.
pattern() {
	echo | grep -q "$@" || [ $? -eq 1 ] || { echo "this grep cannot search for $3: install GNU grep" >&2; exit 1; }
}`,
	"need": `need() {
	command -v "$1" >/dev/null || { echo "the script needs the program $1: install it" >&2; exit 1; }
}`,
	"inside": `# inside SERVER PORT PAGE: whether a server in a container answers.
inside() {
	docker exec "repro-$$-$1" sh -c '
		[ -n "$1" ] || exec grep -qi ": [0-9A-F]*:$(printf %04X "$0") [0-9A-F]*:0000 0A" /proc/net/tcp /proc/net/tcp6
		url=http://127.0.0.1:$0$1
		curl -fsS -o /dev/null "$url" || wget -q -O /dev/null "$url" ||
			python3 -c "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])" "$url"' "$2" "$3"
}`,
}

// programs are the programs that functions cannot do without, beside those that every system has.
var programs = map[string]string{
	"answers": "curl", "checkout": "git", "commit": "docker", "download": "curl", "engine": "docker", "lay": "docker",
	"patch": "git", "pull": "docker", "unpack": "python3",
}

// head returns the beginning of the script, with the functions that it uses.
func (s *script) head() string {
	body := s.out.String()
	s.out.Reset()
	s.line("#!/bin/sh")
	s.comment("By hand what benchgraph did: " + s.Title)
	s.line("set -eu")
	s.line(`work=$(mktemp -d "${TMPDIR:-/tmp}/repro.XXXXXX")`)
	s.line(`echo "Working in $work" >&2`)
	s.line(`mkdir -p "$work/work" "$work/scratch/out"; c=`)
	if s.used["engine"] || s.used["checkout"] {
		s.line("node=%s", sh.Quote(s.Node))
	}
	needed := map[string]bool{}
	for _, name := range []string{"input", "download", "patch"} {
		s.used["same"] = s.used["same"] || s.used[name]
	}
	for name, program := range programs {
		if s.used[name] {
			needed[program], s.used["need"] = true, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		if s.used[name] {
			s.line("%s", functions[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		s.line("need %s", name)
	}
	head := s.out.String()
	s.out.Reset()
	s.out.WriteString(body)
	return head
}

// uses notes functions that the script uses.
func (s *script) uses(names ...string) {
	for _, name := range names {
		s.used[name] = true
	}
}

// text writes a file. name is a word of the shell.
func (s *script) text(content []byte, name string) {
	if utf8.Valid(content) && !bytes.ContainsRune(content, 0) && !bytes.ContainsRune(content, '\r') {
		s.line("text %s %s", sh.Quote(string(content)), name)
		return
	}
	s.line("base64 -d >%s <<'END'\n%s\nEND", name, base64.StdEncoding.EncodeToString(content))
}
