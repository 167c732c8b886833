package logonce

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestOnce: a line is written when it is new or another one, and again once its kind is cleared.
func TestOnce(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	l := New(zap.New(core))
	for i, step := range []struct {
		do   func()
		want int // lines so far
	}{
		{func() { l.Once(zap.WarnLevel, "a", "message", zap.Int("n", 1)) }, 1},
		{func() { l.Once(zap.WarnLevel, "a", "message", zap.Int("n", 1), zap.String("stack", "another")) }, 1},
		{func() { l.Once(zap.WarnLevel, "a", "message", zap.Int("n", 2)) }, 2},
		{func() { l.Once(zap.WarnLevel, "b", "message", zap.Int("n", 2)) }, 3},
		{func() { l.Clear("b"); l.OnceIf(true, zap.WarnLevel, "a", "message", zap.Int("n", 2)) }, 3},
		{func() {
			l.OnceIf(false, zap.WarnLevel, "a", "message")
			l.Once(zap.WarnLevel, "a", "message", zap.Int("n", 2))
		}, 4},
		{func() { l.ClearFunc(func(kind string) bool { return strings.HasPrefix(kind, "a") }) }, 4},
		{func() { l.Once(zap.WarnLevel, "a", "message", zap.Int("n", 2)) }, 5},
	} {
		if step.do(); logs.Len() != step.want {
			t.Errorf("step %d: %d lines, want %d", i+1, logs.Len(), step.want)
		}
	}
}
