package jsondoc

import "encoding/json"

// colons counts the members of all objects in the text of a document: each has one colon outside of strings.
func colons(text []byte) (n int) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && c == ':':
			n++
		}
	}
	return n
}

// members counts the members of all objects in a decoded document, where a repeated key is one member.
func members(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, child := range v {
			n += members(child)
		}
	case []any:
		for _, child := range v {
			n += members(child)
		}
	}
	return n
}

// firsts decodes a whole document. Of several values for one key of an object it keeps the first.
func firsts(text []byte) any {
	decoder := json.NewDecoder(&finite{src: text})
	decoder.UseNumber()
	return decodeFirst(decoder)
}

func decodeFirst(d *json.Decoder) any {
	token, _ := d.Token() // the document was decoded before
	switch token {
	case json.Delim('['):
		all := []any{}
		for d.More() {
			all = append(all, decodeFirst(d))
		}
		_, _ = d.Token()
		return all
	case json.Delim('{'):
		all := map[string]any{}
		for d.More() {
			name, _ := d.Token()
			value := decodeFirst(d)
			if key, ok := name.(string); ok {
				if _, known := all[key]; !known {
					all[key] = value
				}
			}
		}
		_, _ = d.Token()
		return all
	}
	return token
}
