package ranks

import "strings"

// plain are the characters, beside letters and digits, that no shell takes for more than themselves.
const plain = "_-./:,@%+="

// Quote makes one word of s for a POSIX shell, and leaves alone what is one already.
func Quote(s string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(plain, r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
