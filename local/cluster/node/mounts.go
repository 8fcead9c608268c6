package node

import (
	"cmp"
	"slices"
	"strings"
)

// mount says that what a container knows as Path lies in the directory Dir of this machine.
type mount struct {
	Path string `json:"path"`
	Dir  string `json:"dir"`
}

// rewriteMounts replaces mount paths in a word of a command line or an environment value by the directories behind them.
//
// Mounting needs root, so the process is told the true place instead. A mount path counts only as a whole path or the start
// of one (/data, --in=/data/x, file:///data, a:/data:b), and the longest one wins.
func rewriteMounts(text string, mounts []mount) string {
	longestFirst := slices.SortedFunc(slices.Values(mounts), func(a, b mount) int {
		return cmp.Compare(len(b.Path), len(a.Path))
	})
	var rewritten strings.Builder
	for position := 0; position < len(text); {
		found, matches := mountAt(text, position, longestFirst)
		if !matches {
			rewritten.WriteByte(text[position])
			position++
			continue
		}
		rewritten.WriteString(found.Dir)
		position += len(found.Path)
	}
	return rewritten.String()
}

func mountAt(text string, position int, longestFirst []mount) (mount, bool) {
	if text[position] != '/' || !startsPath(text[:position]) {
		return mount{}, false
	}
	for _, candidate := range longestFirst {
		if strings.HasPrefix(text[position:], candidate.Path) && endsName(text[position+len(candidate.Path):]) {
			return candidate, true
		}
	}
	return mount{}, false
}

// startsPath tells whether an absolute path can begin after `before`.
func startsPath(before string) bool {
	if before == "" || strings.HasSuffix(before, "://") {
		return true
	}
	return !isPathByte(before[len(before)-1])
}

// endsName tells whether the name that stands before `after` is complete.
func endsName(after string) bool {
	return after == "" || after[0] == '/' || !isPathByte(after[0])
}

func isPathByte(character byte) bool {
	return character >= 'a' && character <= 'z' || character >= 'A' && character <= 'Z' ||
		character >= '0' && character <= '9' || strings.IndexByte("/._-~+@%", character) >= 0
}

func rewriteAllMounts(texts []string, mounts []mount) []string {
	rewritten := make([]string, 0, len(texts))
	for _, text := range texts {
		rewritten = append(rewritten, rewriteMounts(text, mounts))
	}
	return rewritten
}
