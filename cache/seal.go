package cache

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// seal puts a line before body that says what it is and, by a checksum, whether it is whole.
func seal(magic string, body []byte) []byte {
	return append(fmt.Appendf(nil, "%s%08x\n", magic, checksum(body)), body...)
}

// unseal is the body of what seal made, or an error when it is of another kind or not whole.
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

// checksum tells damage from what was written. Against malice, which could make a SHA-256 as well, it is of no use.
func checksum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }
