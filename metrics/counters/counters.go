// Package counters reads the counters of requests and tokens on the page of metrics of an inference server.
package counters

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// Counters are the counters of an inference server by name: requests that it finished, prompt_tokens,
// generation_tokens, prefix_queries and prefix_hits (tokens looked up in the prefix cache, and found there), and
// prefix_hit_rate, a share that some servers give instead. A name is missing if the server does not count it.
type Counters map[string]float64

// names is the table of names without their part before the colon, which names the server.
func names() map[string]string {
	return map[string]string{
		"request_success_total": "requests", "num_requests_total": "requests", "request_success": "requests",
		"prompt_tokens_total": "prompt_tokens", "generation_tokens_total": "generation_tokens",
		"prefix_cache_queries_total": "prefix_queries", "gpu_prefix_cache_queries_total": "prefix_queries",
		"prefix_cache_queries":    "prefix_queries",
		"prefix_cache_hits_total": "prefix_hits", "gpu_prefix_cache_hits_total": "prefix_hits",
		"prefix_cache_hits": "prefix_hits", "cached_tokens_total": "prefix_hits",
		"cache_hit_rate": "prefix_hit_rate", "gpu_prefix_cache_hit_rate": "prefix_hit_rate",
		"prefix_cache_hit_rate": "prefix_hit_rate",
	}
}

// maxLine is the length in bytes above which a line is skipped.
const maxLine = 63 << 10

// Read reads a page of metrics in the text format of Prometheus. Values of one name with several labels are added. Of
// several names for one counter the largest value counts, since servers keep old names beside new ones.
func Read(page []byte) Counters {
	table, sums := names(), map[string]float64{}
	for line := range bytes.Lines(page) {
		if len(line) == 0 || line[0] == '#' || len(line) > maxLine {
			continue
		}
		name, rest := counterLine(string(line))
		if _, known := table[bare(name)]; !known {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		if v, err := strconv.ParseFloat(fields[0], 64); err == nil && v >= 0 && !math.IsInf(v, 0) {
			sums[name] += v
		}
	}
	found := Counters{}
	for name, sum := range sums {
		if is := table[bare(name)]; sum >= found[is] && !math.IsInf(sum, 0) {
			found[is] = sum
		}
	}
	if _, has := found["prefix_queries"]; !has { // such a server looks up every token of every prompt
		if tokens, ok := found["prompt_tokens"]; ok {
			if _, hits := found["prefix_hits"]; hits {
				found["prefix_queries"] = tokens
			}
		}
	}
	return found
}

// bare returns a name without the part that names the server.
func bare(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// counterLine splits a line into the name and the text behind its labels. The value of a label may hold brackets and
// spaces.
func counterLine(line string) (name, rest string) {
	at := strings.IndexAny(line, "{ \t")
	if at < 0 {
		return "", ""
	}
	name, rest = line[:at], line[at:]
	if rest[0] != '{' {
		return name, rest
	}
	quoted := false
	for i := 1; i < len(rest); i++ {
		switch {
		case quoted && rest[i] == '\\':
			i++
		case rest[i] == '"':
			quoted = !quoted
		case rest[i] == '}' && !quoted:
			return name, rest[i+1:]
		}
	}
	return "", ""
}

// Since returns the differences between two pages. For a rate it returns the later value. A counter that became smaller
// was reset in between, and is left out.
func (c Counters) Since(earlier Counters) Counters {
	between := Counters{}
	for name, v := range c {
		before, known := earlier[name]
		switch {
		case name == "prefix_hit_rate":
			between[name] = v
		case known && v >= before:
			between[name] = v - before
		}
	}
	return between
}

// HitRate returns the share of the looked-up tokens that the prefix cache had; false: not known.
func (c Counters) HitRate() (float64, bool) {
	if queries, known := c["prefix_queries"]; known && queries > 0 {
		return c["prefix_hits"] / queries, true
	}
	rate, known := c["prefix_hit_rate"]
	return rate, known
}
