package cache

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// seal returns body behind a first line of magic, the kind of file, and the checksum of body.
func seal(magic string, body []byte) []byte {
	return append(fmt.Appendf(nil, "%s%08x\n", magic, checksum(body)), body...)
}

// unseal returns the body of a sealed file. An error says that the file is of another kind, or damaged.
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
