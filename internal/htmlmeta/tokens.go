package htmlmeta

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word or a number of a block, or what divides sentences.
type token struct {
	start, end int
	kind       tokenKind
	is         vocabulary // of a word
}

type tokenKind uint8

const (
	word          tokenKind = iota
	number                  // of one or two digits: a day, or anything else
	otherNumber             // none of these: 1000, 2to3
	year                    // or several: 2019-2026
	fullDate                // 2026-11-24, 24.11.2026, 11/24/26, 2026年11月24日
	timeOfDay               // 10:32, 10h32, 10時32分
	version                 // 7.2, 3.0-rc1, v3
	copyrightSign           // ©, (c)
	chinesePhrase           // of chinesePhrases
	chineseUpdate           // begins with the word for an update
	bar                     // divides, as | and brackets do
	sentenceEnd
)

// hasDate reports whether a block can have a stamp's date: a year, or if it says little else, the version of a generator
// or a date without a year.
func hasDate(block []byte) bool {
	const short = 80
	isShort := len(block) <= short
	block = block[digitFrom(block):] // what comes before the first digit is none of these
	if len(block) < len("7.2") {
		return false
	}
	if isShort && hasDividedNumber(block) {
		return true
	}
	return hasYear(block, "20") || hasYear(block, "19")
}

func hasYear(s []byte, century string) bool {
	for {
		i := bytes.Index(s, []byte(century))
		if i < 0 || i+4 > len(s) {
			return false
		}
		if isDigit(s[i+2]) && isDigit(s[i+3]) {
			return true
		}
		s = s[i+1:]
	}
}

// hasDividedNumber reports whether there is a number with a separator: 7.2, 10:32.
func hasDividedNumber(s []byte) bool {
	for i := 1; i+1 < len(s); i++ {
		if isNumberSeparator(s[i]) && isDigit(s[i-1]) && isDigit(s[i+1]) {
			return true
		}
	}
	return false
}

// digitFrom returns where the eight bytes begin in which the first digit is, or len(s). Most text has none, and eight
// bytes take no longer than one.
func digitFrom(s []byte) int {
	const each = 0x0101010101010101
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		v := binary.LittleEndian.Uint64(s[i:])
		// Of a digit, the upper half is 3, and also when 6 is added.
		upper := v ^ 0x30*each
		upperOfSum := ((v & (0x7F * each)) + 6*each) ^ 0x30*each
		isNone := (upper | upperOfSum) & (0xF0 * each)
		hasZero := (isNone-each)&^isNone&(0x80*each) != 0
		if hasZero {
			return i
		}
	}
	for ; i < len(s); i++ {
		if isDigit(s[i]) {
			return i
		}
	}
	return i
}

// stampStarts are the beginnings of the words that begin stamps: a filter, as nearly all text with numbers has none.
var stampStarts = newStarts()

// starts are the beginnings of words.
type starts struct {
	pairs  [1 << 10]bool        // of their first two bytes: most words are none by these
	hashes [1 << 16 / 64]uint64 // a set of hashes of 16 bits: fewer would let a word of each paragraph pass
}

func pairOf(s []byte) int { return int(s[0]&31)<<5 | int(s[1]&31) }

func (s *starts) add(word []byte) {
	s.pairs[pairOf(word)] = true
	hash := startOf(word)
	s.hashes[hash/64] |= 1 << (hash % 64)
}

// has reports whether a word begins as one of those does.
func (s *starts) has(word []byte) bool {
	if len(word) < 2 || !s.pairs[pairOf(word)] {
		return false
	}
	hash := startOf(word)
	return s.hashes[hash/64]&(1<<(hash%64)) != 0
}

func newStarts() *starts {
	var all starts
	for name, is := range stampWords {
		if is&(lastWord|updateWord|generateWord|copyrightWord) == 0 {
			continue
		}
		for _, form := range []string{name, strings.ToUpper(name), titleCase(name)} {
			all.add([]byte(form))
		}
	}
	for _, phrase := range append(chinesePhrases, updateSign) {
		all.add([]byte(phrase))
	}
	return &all
}

func titleCase(word string) string {
	first, n := utf8.DecodeRuneInString(word)
	return string(unicode.ToTitle(first)) + word[n:]
}

// startOf returns a hash of the beginning of a word, without the case of the letters of ASCII: eight bytes of it, as
// "late" is not enough to tell "latest" from "later". Of Chinese, which does not divide words, it is two characters.
func startOf(s []byte) uint32 {
	n := 8
	if s[0] >= 0xE0 {
		n = 6
	}
	h := uint32(0)
	for _, c := range s[:min(len(s), n)] {
		switch {
		case c >= utf8.RuneSelf:
		case isLetter(c):
			c |= 0x20
		default:
			return h >> 16
		}
		h = (h + uint32(c)) * 0x9E3779B1
	}
	return h >> 16
}

// canHaveStamp reports whether a word or sign of a block can begin a stamp. In Chinese, it can be anywhere in what is
// written as a word.
func canHaveStamp(block []byte) bool {
	for i := 0; i < len(block); {
		c := block[i]
		isChinese := c >= 0xE0
		isWord := isLetter(c) || c >= utf8.RuneSelf
		if isWord && stampStarts.has(block[i:]) {
			return true
		}
		if (c == '(' || c >= utf8.RuneSelf) && copyrightSignSize(block[i:]) > 0 {
			return true
		}
		i++
		if isWord && !isChinese {
			i += wordRest(block[i:]) // a stamp begins with a whole word
		}
	}
	return false
}

// wordRest returns how many bytes of the word that has begun come first: letters of ASCII, and of what is no Chinese.
func wordRest(s []byte) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || utf8.RuneSelf <= s[n] && s[n] < 0xE0) {
		n++
	}
	return n
}

// copyrightSignSize returns the size of the copyright sign with which s begins; 0: it begins otherwise.
func copyrightSignSize(s []byte) int {
	switch s[0] {
	case '(':
		if len(s) >= 3 && s[1]|0x20 == 'c' && s[2] == ')' {
			return len("(c)")
		}
	case "©"[0]:
		if bytes.HasPrefix(s, []byte("©")) {
			return len("©")
		}
	case "ⓒ"[0]:
		if bytes.HasPrefix(s, []byte("ⓒ")) || bytes.HasPrefix(s, []byte("Ⓒ")) {
			return len("ⓒ")
		}
	}
	return 0
}

func isDigit(c byte) bool           { return '0' <= c && c <= '9' }
func isNumberSeparator(c byte) bool { return c == '-' || c == '/' || c == '.' || c == ':' }

// appendTokens appends the tokens of a block.
func appendTokens(tokens []token, s []byte) []token {
	for i := 0; i < len(s); {
		// Before words and bars: (c) is neither.
		if n := copyrightSignSize(s[i:]); n > 0 {
			tokens = append(tokens, token{start: i, end: i + n, kind: copyrightSign})
			i += n
			continue
		}
		c, n := utf8.DecodeRune(s[i:])
		switch {
		case c < utf8.RuneSelf && isDigit(byte(c)):
			t := scanNumber(s, i)
			tokens = append(tokens, t)
			i = t.end
			continue
		case unicode.IsLetter(c):
			t := scanWord(s, i)
			tokens = append(tokens, t)
			i = t.end
			continue
		case endsSentence(s, i, c, n, tokens):
			tokens = append(tokens, token{start: i, end: i + n, kind: sentenceEnd})
		case isBar(c):
			tokens = append(tokens, token{start: i, end: i + n, kind: bar})
		}
		i += n
	}
	return tokens
}

func isBar(c rune) bool {
	switch c {
	case '|', '(', ')', '[', ']', ';', '·', '•', '—', '（', '）', '｜':
		return true
	}
	return false
}

// endsSentence reports whether a character ends a sentence. A full stop does not behind a day or an abbreviation, as
// in "24. Nov. 2026" and "Example Inc. 2026".
func endsSentence(s []byte, i int, c rune, n int, before []token) bool {
	switch c {
	case '。', '！', '？':
		return true
	case '.', '!', '?':
		if i+n < len(s) && s[i+n] != ' ' {
			return false
		}
	default:
		return false
	}
	if c != '.' || len(before) == 0 {
		return true
	}
	last := before[len(before)-1]
	const abbreviation = 4
	isShort := last.kind == word && last.end-last.start <= abbreviation
	return !isShort && last.kind != number
}

// scanNumber scans what begins with a digit.
func scanNumber(s []byte, start int) token {
	var groups numberGroups
	i := start
	for {
		from := i
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		groups.add(s[from:i])
		n := separatorAt(s[i:])
		if n == 0 {
			break
		}
		groups.separate(s[i : i+n])
		i += n
		if i == len(s) || !isDigit(s[i]) {
			break
		}
	}
	end := i
	for end < len(s) && isLetter(s[end]) {
		end++
	}
	t := token{start: start, end: end, kind: groups.kind()}
	suffix := s[i:end]
	if len(suffix) == 0 {
		return t
	}
	// 24th is a day, but 2to3 and 1980s are neither a day nor a year. Dates, times and versions may end in letters.
	isOrdinal := t.kind == number && slices.Contains(ordinals, string(suffix))
	isPlain := t.kind == number || t.kind == year
	if isPlain && !isOrdinal {
		t.kind = otherNumber
	}
	return t
}

// ordinals are endings of days.
var ordinals = []string{"st", "nd", "rd", "th", "er"}

// dateSigns stand behind the numbers of a date or a time in Chinese and Japanese.
const (
	dateSigns = "年月日号" + timeSigns
	timeSigns = "時时分秒"
)

// separatorAt returns the size of what divides the numbers of a date or a version, or stands behind them; 0: nothing
// does. A colon or a stop that no digit follows is not of the number.
func separatorAt(s []byte) int {
	if len(s) >= 2 && isDigit(s[1]) {
		isOfTime := s[0] == 'T' || s[0] == 'h' || s[0] == '+'
		if isNumberSeparator(s[0]) || isOfTime {
			return 1
		}
	}
	c, n := utf8.DecodeRune(s)
	if c >= utf8.RuneSelf && bytes.ContainsRune([]byte(dateSigns), c) {
		return n
	}
	return 0
}

// numberGroups are the numbers of a date or of a version.
type numberGroups struct {
	n           int
	years       int // of four digits, 1900 to 2099
	longest     int // digits
	colon       bool
	last        int // digits of the last
	slashes     int
	chineseDate bool
	chineseTime bool
}

func (g *numberGroups) add(digits []byte) {
	g.n++
	g.last = len(digits)
	g.longest = max(g.longest, len(digits))
	isYear := len(digits) == 4 && (string(digits[:2]) == "19" || string(digits[:2]) == "20")
	if isYear {
		g.years++
	}
}

// separate adds what divides numbers, or stands behind them.
func (g *numberGroups) separate(by []byte) {
	switch c := by[0]; {
	case c == ':', c == 'h':
		g.colon = true
	case c == '/':
		g.slashes++
	case c >= utf8.RuneSelf && bytes.Contains([]byte(timeSigns), by):
		g.chineseTime = true
	case c >= utf8.RuneSelf:
		g.chineseDate = true
	}
}

func (g *numberGroups) kind() tokenKind {
	switch {
	case g.years == g.n:
		return year
	case g.n == 1 && g.longest <= 2:
		return number
	case g.n == 1:
		return otherNumber
	case g.years == 1, g.slashes == 2, g.chineseDate:
		return fullDate
	case g.colon && g.last >= 2, g.chineseTime:
		return timeOfDay
	default:
		return version
	}
}

// scanWord scans what begins with a letter. Digits may follow those of ASCII: v3.
func scanWord(s []byte, start int) token {
	t := token{start: start, kind: word}
	i := start
	isASCII := true
	for i < len(s) {
		c, n := utf8.DecodeRune(s[i:])
		isVersion := t.kind == version && c == '.' && i+1 < len(s) && isDigit(s[i+1])
		if isASCII && i > start && (isDigit(s[i]) || isVersion) {
			isV := i == start+1 && s[start]|0x20 == 'v'
			if isV {
				t.kind = version
			}
		} else if !unicode.IsLetter(c) && !unicode.IsMark(c) {
			break
		}
		isASCII = c < utf8.RuneSelf
		i += n
	}
	t.end = i
	if t.kind == word {
		t.classify(s[start:i])
	}
	return t
}

// maxWord is more than the bytes of all words that are known.
const maxWord = 64

// classify looks a word up.
func (t *token) classify(s []byte) {
	if c, _ := utf8.DecodeRune(s); unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana) {
		t.kind = chineseKind(s)
		return
	}
	if len(s) > maxWord {
		return
	}
	var buf [2 * maxWord]byte // a letter in lower case can be longer
	lower := buf[:0]
	for _, c := range string(s) {
		lower = utf8.AppendRune(lower, unicode.ToLower(c))
	}
	t.is = stampWords[string(lower)]
}

// updateSign is the word for an update in Chinese and Japanese.
const updateSign = "更新"

func chineseKind(s []byte) tokenKind {
	for _, phrase := range chinesePhrases {
		if bytes.Contains(s, []byte(phrase)) {
			return chinesePhrase
		}
	}
	if bytes.HasPrefix(s, []byte(updateSign)) {
		return chineseUpdate
	}
	return word
}
