package sitemap

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/merge"
)

// siteLog writes the log lines of a site. It is safe for concurrent use.
type siteLog struct {
	*zap.Logger
	sample *sampler // nil: every line is written

	mu   sync.Mutex
	last map[string]string // the last line of each kind
}

func newSiteLog(logger *zap.Logger, i identity) *siteLog {
	l := &siteLog{Logger: logger, last: make(map[string]string)}
	if i.onDemand {
		l.sample = &i.handler.sample
	}
	return l
}

// log writes a line. Of sites on demand, of which visitors may name any number, a handler
// writes the first, tenth, hundredth … of the same message, with how often it came; what
// lies between is for debugging.
func (l *siteLog) log(level zapcore.Level, message string, fields ...zap.Field) {
	if l.sample != nil && level > zapcore.DebugLevel {
		n := l.sample.count(message)
		if !isPowerOfTen(n) {
			level = zapcore.DebugLevel
		}
		fields = append(fields, zap.Int("times", n))
	}
	if c := l.Check(level, message); c != nil {
		c.Write(fields...)
	}
}

// once writes a line of a kind, and not again while it stays the same.
func (l *siteLog) once(level zapcore.Level, kind, message string, fields ...zap.Field) {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	delete(enc.Fields, "stack") // it is never the same twice
	line := fmt.Sprint(message, enc.Fields)
	l.mu.Lock()
	same := l.last[kind] == line
	l.last[kind] = line
	l.mu.Unlock()
	if !same {
		l.log(level, message, fields...)
	}
}

// onceIf writes a line once while it applies.
func (l *siteLog) onceIf(applies bool, level zapcore.Level, kind, message string, fields ...zap.Field) {
	if applies {
		l.once(level, kind, message, fields...)
	} else {
		l.clear(kind)
	}
}

// clear lets a line of a kind be written again.
func (l *siteLog) clear(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, kind)
}

// keepSources lets what sources said be written again, save for the kinds given.
func (l *siteLog) keepSources(kinds map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for kind := range l.last {
		if strings.HasPrefix(kind, sourceKind) && !kinds[kind] {
			delete(l.last, kind)
		}
	}
}

// state says once what is wrong with keeping records.
func (l *siteLog) state(err error) {
	l.onceIf(err != nil, zap.WarnLevel, "state", "cannot keep what is known of the pages: it is relearned after a restart", zap.Error(err))
}

// panics says which sources panicked.
func (l *siteLog) panics(failed []merge.InputError) {
	for _, f := range failed {
		var panicked *merge.PanicError
		if errors.As(f.Err, &panicked) {
			l.once(zapcore.ErrorLevel, "panic "+f.Name, "a source of pages panicked", zap.String("source", f.Name),
				zap.Any("panic", panicked.Value), zap.ByteString("stack", panicked.Stack))
		}
	}
}

// sourceKind begins the kinds of what sources say.
const sourceKind = "source "

// sampler counts messages of a handler's sites on demand.
type sampler struct {
	mu     sync.Mutex
	counts map[string]int
}

// maxSampled is how many messages are counted each by itself: those of guest modules may
// differ from one site to the next.
const maxSampled = 50

func (s *sampler) count(message string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[string]int)
	}
	if _, known := s.counts[message]; !known && len(s.counts) >= maxSampled {
		message = ""
	}
	s.counts[message]++
	return s.counts[message]
}

func isPowerOfTen(n int) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}
