package cache

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// seal returns body after a first line with magic, which names the kind of file, and the checksum of body.
func seal(magic string, body []byte) []byte {
	return append(fmt.Appendf(nil, "%s%08x\n", magic, checksum(body)), body...)
}

// unseal returns the body of a sealed file. The error says that the file is of another kind, or damaged.
func unseal(magic string, data []byte) (body []byte, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, errors.New("it does not begin as it should")
	}
	sum, body, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || string(sum) != fmt.Sprintf("%08x", checksum(body)) {
		return nil, errors.New("its checksum is wrong")
	}
	return body, nil
}

// checksum finds damage. Against malice, a SHA-256 would not help either: whoever changes the file can compute it.
func checksum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }
