// Package logonce logs a recurring condition only when it changes.
package logonce

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// perHour is how many lines of one condition are written an hour.
const perHour = 4

// Logger is a logger that also remembers the last line of each kind, a word that names the condition.
// It is safe for concurrent use.
type Logger struct {
	*zap.Logger
	*memory
}

// memory is what was written.
type memory struct {
	mu         sync.Mutex
	last       map[string]string
	conditions map[string]*condition
	counts     map[string]int // see Grown
}

// condition is what was written of a condition: see [Logger.While].
type condition struct {
	lines   map[string]bool // since it began
	written []time.Time     // in the last hour
}

// New returns a Logger that writes to another one.
func New(logger *zap.Logger) *Logger {
	return &Logger{logger, &memory{
		last:       make(map[string]string),
		conditions: make(map[string]*condition),
		counts:     make(map[string]int),
	}}
}

// To returns a Logger that writes to another one, and remembers what this one does.
func (l *Logger) To(logger *zap.Logger) *Logger { return &Logger{logger, l.memory} }

// Once writes a line of a kind, unless the last one of that kind was the same but for a field named stack, and for what is
// never the same twice in the texts of errors, such as ports.
func (l *Logger) Once(level zapcore.Level, kind, message string, fields ...zap.Field) {
	line := lineOf(message, fields)
	l.mu.Lock()
	same := l.last[kind] == line
	l.last[kind] = line
	l.mu.Unlock() // a log may block
	if !same {
		l.Log(level, message, fields...)
	}
}

// OnceIf is Once if the line applies, else Clear.
func (l *Logger) OnceIf(applies bool, level zapcore.Level, kind, message string, fields ...zap.Field) {
	if !applies {
		l.Clear(kind)
		return
	}
	l.Once(level, kind, message, fields...)
}

// Lasting writes a line when a condition begins, and another one when it is over. The condition is named: under another
// name, it is another one. "": there is none.
func (l *Logger) Lasting(condition string, level zapcore.Level, kind, message, over string, fields ...zap.Field) {
	l.mu.Lock()
	before := l.last[kind]
	l.last[kind] = condition
	l.mu.Unlock()
	switch condition {
	case before:
	case "":
		l.Info(over)
	default:
		l.Log(level, message, fields...)
	}
}

// Grown writes a line the first time that something is counted, and again once there is a tenth more of it.
func (l *Logger) Grown(n int, level zapcore.Level, kind, message string, fields ...zap.Field) {
	l.mu.Lock()
	before := l.counts[kind]
	isNews := n > before+before/10
	if isNews {
		l.counts[kind] = n
	}
	l.mu.Unlock()
	if isNews {
		l.Log(level, message, fields...)
	}
}

// While is OnceIf for a condition whose lines differ while it lasts, as where a storage fails in several ways in turn: each
// is written once until the condition is over, and four in an hour at most, however often it comes back.
func (l *Logger) While(applies bool, level zapcore.Level, kind, message string, fields ...zap.Field) {
	if !applies {
		l.Clear(kind)
		return
	}
	l.mu.Lock()
	c := l.conditions[kind]
	if c == nil {
		c = new(condition)
		l.conditions[kind] = c
	}
	isWritten := c.note(lineOf(message, fields), time.Now())
	l.mu.Unlock()
	if isWritten {
		l.Log(level, message, fields...)
	}
}

// note reports whether a line is to be written.
func (c *condition) note(line string, now time.Time) bool {
	c.written = slices.DeleteFunc(c.written, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	if c.lines[line] || len(c.written) >= perHour {
		return false
	}
	if c.lines == nil {
		c.lines = make(map[string]bool)
	}
	c.lines[line] = true
	c.written = append(c.written, now)
	return true
}

// Clear lets a line of a kind be written again: the condition is over.
func (l *Logger) Clear(kind string) {
	l.ClearFunc(func(k string) bool { return k == kind })
}

// ClearFunc lets lines of matching kinds be written again.
func (l *Logger) ClearFunc(match func(kind string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.last, func(kind, _ string) bool { return match(kind) })
	for kind, c := range l.conditions {
		if match(kind) {
			c.lines = nil
		}
	}
}

// lineOf returns what is compared of a line.
func lineOf(message string, fields []zap.Field) string {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		err, isError := f.Interface.(error)
		if isError && f.Type == zapcore.ErrorType {
			f = zap.String(f.Key, cause(err.Error()))
		}
		f.AddTo(enc)
	}
	delete(enc.Fields, "stack") // it is never the same twice
	return fmt.Sprint(message, enc.Fields)
}

var (
	addressPattern = regexp.MustCompile(`\[[0-9a-fA-F:.%]+\]|\b[0-9]{1,3}(\.[0-9]{1,3}){3}\b`)
	numberPattern  = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]*`)
)

// cause returns the text of an error without addresses, ports, times and names with numbers, which differ between errors of
// one cause. Numbers of three digits stay: most are the status of a response.
func cause(text string) string {
	text = addressPattern.ReplaceAllString(text, "*")
	return numberPattern.ReplaceAllStringFunc(text, func(word string) string {
		_, err := strconv.Atoi(word)
		if err == nil && len(word) == 3 {
			return word
		}
		return "*"
	})
}

// PerMinute returns a logger that writes each message once a minute.
func PerMinute(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
	}))
}
