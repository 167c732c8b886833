package logonce

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestWhile: of a condition, each line is written once until it is over, and four an hour at most.
func TestWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		l := New(zap.New(core))
		fails := func(text string) { l.While(true, zap.WarnLevel, "storage", "fails", zap.Error(errors.New(text))) }
		for i, step := range []struct {
			do   func()
			want int // lines so far
		}{
			{func() { fails("dial tcp 127.0.0.1:6379: connect: connection refused") }, 1},
			{func() { fails("read tcp 127.0.0.1:50001->127.0.0.1:6379: i/o timeout") }, 2},
			{func() { fails("read tcp 10.0.0.7:50002->127.0.0.1:6379: i/o timeout") }, 2},
			{func() { fails("dial tcp [::1]:6379: connect: connection refused") }, 2},
			{func() { l.Clear("other"); fails("dial tcp 127.0.0.1:6379: connect: connection refused") }, 2},
			{func() {
				l.While(false, zap.WarnLevel, "storage", "")
				fails("read tcp 1.2.3.4:5->1.2.3.4:6: i/o timeout")
			}, 3},
			{func() { fails("status 500") }, 4},
			{func() { fails("status 503") }, 4}, // four in this hour
			{func() { l.While(true, zap.WarnLevel, "another", "fails") }, 5},
			{func() { time.Sleep(time.Hour); fails("status 500") }, 5}, // it is not over
			{func() { fails("status 503") }, 6},
			{func() {
				for range 1000 {
					fails("status 404")
					l.Clear("storage")
				}
			}, 9},
			{func() { time.Sleep(time.Hour); fails("status 404") }, 10},
		} {
			if step.do(); logs.Len() != step.want {
				t.Errorf("step %d: %d lines, want %d", i+1, logs.Len(), step.want)
			}
		}
	})
}

// TestCause: what is never the same twice in the text of an error is not compared. What is logged has it.
func TestCause(t *testing.T) {
	for _, test := range []struct {
		a, b   string
		isSame bool
	}{
		{"read tcp 10.0.0.7:50001->10.0.0.8:6379: i/o timeout", "read tcp 10.0.0.9:43210->10.0.0.8:6379: i/o timeout", true},
		{"read tcp [fe80::1%eth0]:50001->[::1]:6379: EOF", "read tcp [fe80::2%eth0]:50002->[::1]:6379: EOF", true},
		{"write /state/.tmp-8315113: no space left", "write /state/.tmp-11212: no space left", true},
		{"rename /state/5XG2A7QIM: denied", "rename /state/QQ7B3LWVA: denied", true},
		{"no answer after 10.003s", "no answer after 9.98s", true},
		{"request 00000000-9f0c-4f3a-aaaa-0123456789ab: status 503", "request 11111111-9f0c-4f3b-aaaa-0123456789ab: status 503", true},
		{"status 503", "status 500", false},
		{"connection refused", "i/o timeout", false},
	} {
		if got := cause(test.a) == cause(test.b); got != test.isSame {
			t.Errorf("%q and %q: same %t", cause(test.a), cause(test.b), got)
		}
	}
	core, logs := observer.New(zap.InfoLevel)
	l := New(zap.New(core))
	for _, port := range []string{"50001", "50002"} {
		l.Once(zap.WarnLevel, "a", "fails", zap.Error(errors.New("port "+port)), zap.Int("n", 1))
	}
	if logs.Len() != 1 || logs.All()[0].ContextMap()["error"] != "port 50001" {
		t.Errorf("got %v", logs.All())
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
