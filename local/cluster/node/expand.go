package node

import "strings"

// expand replaces each $(NAME) of a text by its value, as Kubernetes does: $$ stands for one dollar sign, and a reference
// to an unknown name stays as it is written.
func expand(text string, values map[string]string) string {
	var expanded strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		expanded.WriteString(before)
		if !found {
			return expanded.String()
		}
		name, rest, closed := "", "", false
		if strings.HasPrefix(after, "(") {
			name, rest, closed = strings.Cut(after[1:], ")")
		}
		value, known := values[name]
		switch {
		case strings.HasPrefix(after, "$"):
			expanded.WriteByte('$')
			text = after[1:]
		case closed && known:
			expanded.WriteString(value)
			text = rest
		case closed:
			expanded.WriteString("$(" + name + ")")
			text = rest
		default:
			expanded.WriteByte('$')
			text = after
		}
	}
}

func expandAll(texts []string, values map[string]string) []string {
	expanded := make([]string, 0, len(texts))
	for _, text := range texts {
		expanded = append(expanded, expand(text, values))
	}
	return expanded
}
