// Package counters reads the page of metrics of an inference server: how many requests and tokens it counts.
package counters

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// Counters are what an inference server counts of itself, by name: requests that it finished, prompt_tokens,
// generation_tokens, prefix_queries and prefix_hits (tokens that its prefix cache was asked for, and had), and
// prefix_hit_rate, a share that some servers give instead. A server that does not count something has no such name.
type Counters map[string]float64

// names is the table of names without the part before the colon, which is the server's.
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

// maxLine is the length in bytes beyond which a line is passed over.
const maxLine = 63 << 10

// Read reads a page of metrics in the text format of Prometheus. Values of one name with several labels are
// added, and of several names for one thing the largest holds, since servers keep old names beside new ones.
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
	if _, has := found["prefix_queries"]; !has { // what was looked up is then each token of each prompt
		if tokens, ok := found["prompt_tokens"]; ok {
			if _, hits := found["prefix_hits"]; hits {
				found["prefix_queries"] = tokens
			}
		}
	}
	return found
}

// bare is a name without the server's part.
func bare(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// counterLine splits a line into a name and what follows its labels. A label's text may hold brackets and spaces.
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

// Since returns the difference of two pages. A rate is the rate of the later page. A counter that became smaller was
// reset in between, and is left out.
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

// HitRate is the share of the tokens that the prefix cache was asked for and had; false: nobody knows.
func (c Counters) HitRate() (float64, bool) {
	if queries, known := c["prefix_queries"]; known && queries > 0 {
		return c["prefix_hits"] / queries, true
	}
	rate, known := c["prefix_hit_rate"]
	return rate, known
}
