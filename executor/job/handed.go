package job

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// requestPart begins the names of the variables with the parts of a request; a number follows.
	requestPart = "BENCHGRAPH_REQUEST_PART_"
	// mostPart is the largest size of a part, in bytes. The kernel accepts variables of up to 128 KiB.
	mostPart = 96 << 10
)

// unpack writes the file with the request from its parts, in a directory that only the user can open.
const unpack = `d=$(mktemp -d IN) && (umask 077; { PARTS; } | base64 -d | gzip -d >"$d/request") || exit 125
export ` + RequestVariable + `="$d/request"
unset d NAMES
`

// Handed encodes a request in variables, for a machine that shares no directory with this one. It also returns lines
// of sh that write the request to a file and unset the variables, so that a program which replaces the shell does not
// inherit them. The file is in a new directory below dir, or below the directory for temporary files if dir is empty.
// The machine needs mktemp, base64 and gzip. most limits the size of all variables, in bytes.
func Handed(request []byte, dir string, most int) (variables map[string]string, lines string, err error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(request)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, "", err
	}
	text := base64.StdEncoding.EncodeToString(packed.Bytes())
	if len(text) > most {
		return nil, "", fmt.Errorf("its request has %d bytes, packed, and there is room for %d", len(text), most)
	}
	variables = map[string]string{}
	for part := range slices.Chunk([]byte(text), mostPart) {
		variables[fmt.Sprintf("%s%02d", requestPart, len(variables))] = string(part)
	}
	names := slices.Sorted(maps.Keys(variables))
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = fmt.Sprintf(`printf %%s "$%s"`, n)
	}
	if dir != "" {
		dir += "/benchgraph-XXXXXX"
	}
	return variables, strings.NewReplacer(" IN", strings.TrimRight(" "+dir, " "), "PARTS", strings.Join(words, "; "),
		"NAMES", strings.Join(names, " ")).Replace(unpack), nil
}
