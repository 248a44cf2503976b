package dataset

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// floating returns a float as JSON; nil: JSON cannot write it.
func floating(f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, bits))
}

// text returns a cell as text; empty: the cell has no value, or a word such as "unknown".
func text(v any) string {
	switch v := v.(type) {
	case string:
		s := strings.TrimSpace(v)
		switch strings.ToLower(s) {
		case "none", "null", "nan", "n/a", "na", "unknown", "-", "—":
			return ""
		}
		return s
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case []any:
		for _, item := range v {
			if s := text(item); s != "" {
				return s
			}
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
