// Package logonce logs a recurring condition only when it changes.
package logonce

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger is a logger that also remembers the last line of each kind, a word that names the condition.
// It is safe for concurrent use.
type Logger struct {
	*zap.Logger
	mu   sync.Mutex
	last map[string]string
}

// New returns a Logger that writes to another one.
func New(logger *zap.Logger) *Logger {
	return &Logger{Logger: logger, last: make(map[string]string)}
}

// Once writes a line of a kind, unless the last one of that kind was the same but for a field named stack.
func (l *Logger) Once(level zapcore.Level, kind, message string, fields ...zap.Field) {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	delete(enc.Fields, "stack") // it is never the same twice
	line := fmt.Sprint(message, enc.Fields)
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

// Clear lets a line of a kind be written again.
func (l *Logger) Clear(kind string) {
	l.ClearFunc(func(k string) bool { return k == kind })
}

// ClearFunc lets lines of matching kinds be written again.
func (l *Logger) ClearFunc(match func(kind string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.last, func(kind, _ string) bool { return match(kind) })
}

// PerMinute returns a logger that writes each message once a minute.
func PerMinute(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
	}))
}
