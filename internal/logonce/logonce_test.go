package logonce

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestOnce: a line is written when its message is new for its kind, and again once its kind is cleared.
func TestOnce(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	l := New(zap.New(core))
	for i, step := range []struct {
		do   func()
		want int // lines so far
	}{
		{func() { l.Once(zap.WarnLevel, "a", "message", zap.Int("n", 1)) }, 1},
		{func() { l.Once(zap.WarnLevel, "a", "message", zap.Int("n", 2)) }, 1},
		{func() { l.Once(zap.WarnLevel, "a", "another message", zap.Int("n", 2)) }, 2},
		{func() { l.Once(zap.WarnLevel, "b", "message", zap.Int("n", 2)) }, 3},
		{func() { l.Clear("b"); l.OnceIf(true, zap.WarnLevel, "a", "another message") }, 3},
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

// TestLasting: a condition is told when it begins, when it is another one, and when it is over.
func TestLasting(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	l := New(zap.New(core))
	for i, step := range []struct{ condition, want string }{
		{"", ""}, {"full", "fails"}, {"full", ""}, {"down", "fails"}, {"", "works"}, {"", ""}, {"down", "fails"},
	} {
		l.Lasting(step.condition, zap.WarnLevel, "disk", "fails", "works", zap.Int("n", i))
		got := ""
		for _, line := range logs.TakeAll() {
			got += line.Message
		}
		if got != step.want {
			t.Errorf("step %d: got %q, want %q", i+1, got, step.want)
		}
	}
}

// TestPerMinute: a message is written once a minute, whatever its fields say.
func TestPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		l := PerMinute(zap.New(core))
		for i := range 120 {
			l.Warn("one", zap.Int("n", i))
			l.Warn("another")
			time.Sleep(time.Second)
		}
		if logs.Len() != 4 {
			t.Errorf("got %d lines of two messages in two minutes, want 4", logs.Len())
		}
	})
}
