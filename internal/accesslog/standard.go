package accesslog

import (
	"bytes"
	"encoding/json"
	"strings"
)

// parseStandard reads a line of JSON with encoding/json. It has the say of what is
// JSON, and of what a line means: of a key that comes twice in an object, the last
// one counts.
func parseStandard(line []byte, v *Visit) error {
	d := draft{Visit: v}
	if err := readObject(inLine, line, &d); err != nil {
		return ErrSyntax
	}
	return d.finish()
}

func readObject(object field, raw []byte, d *draft) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return err
	}
	for key, value := range values {
		f := fieldOf(object, []byte(key))
		value = bytes.TrimSpace(value)
		switch {
		case f == noField:
		case f < inLine:
			k, s, err := readValue(value)
			if err != nil {
				return err
			}
			d.set(f, k, s)
		case value[0] == '{':
			if err := readObject(f, value, d); err != nil {
				return err
			}
		}
	}
	return nil
}

func readValue(raw []byte) (k kind, s string, err error) {
	switch raw[0] {
	case '"':
		err = json.Unmarshal(raw, &s)
		return text, s, err
	case '[':
		var all []json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			return 0, "", err
		}
		var parts []string
		for _, one := range all {
			one = bytes.TrimSpace(one)
			if one[0] != '"' {
				continue
			}
			if err := json.Unmarshal(one, &s); err != nil {
				return 0, "", err
			}
			parts = append(parts, s)
		}
		return text, strings.Join(parts, ", "), nil
	case '{', 't':
		return something, "", nil
	case 'f', 'n':
		return nothing, "", nil
	}
	return number, string(raw), nil
}
