// Package logonce logs a recurring condition only when it changes.
package logonce

import (
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger is a logger that also remembers the last condition of each kind, a word that names it. It is safe for concurrent
// use.
type Logger struct {
	*zap.Logger
	*memory
}

// memory is what was written.
type memory struct {
	mu   sync.Mutex
	last map[string]string
}

// New returns a Logger that writes to another one.
func New(logger *zap.Logger) *Logger {
	return &Logger{logger, &memory{last: make(map[string]string)}}
}

// To returns a Logger that writes to another one, and remembers what this one does.
func (l *Logger) To(logger *zap.Logger) *Logger { return &Logger{logger, l.memory} }

// Once writes a line of a kind, unless the last one of that kind has the same message.
func (l *Logger) Once(level zapcore.Level, kind, message string, fields ...zap.Field) {
	l.Lasting(message, level, kind, message, "", fields...)
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
	isNews := l.note(kind, condition)
	switch {
	case !isNews:
	case condition == "":
		l.Info(over)
	default:
		l.Log(level, message, fields...)
	}
}

// note reports whether a condition is not the last one of its kind.
func (m *memory) note(kind, condition string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.last[kind]
	m.last[kind] = condition
	return condition != before
}

// Clear lets a line of a kind be written again: the condition is over.
func (m *memory) Clear(kind string) { m.note(kind, "") }

// ClearFunc lets lines of matching kinds be written again.
func (m *memory) ClearFunc(match func(kind string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.last, func(kind, _ string) bool { return match(kind) })
}

// PerMinute returns a logger that writes each message once a minute.
func PerMinute(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
	}))
}
