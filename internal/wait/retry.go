package wait

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is the longest that [RetryAfter] returns.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter returns how long the Retry-After of a response's header asks to wait (RFC 9110, section 10.2.3), and
// fallback where it asks for nothing.
func RetryAfter(header http.Header, now time.Time, fallback time.Duration) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	// More seconds than fit in a number are very many.
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		return min(time.Duration(seconds)*time.Second, MaxRetryAfter)
	}
	// A time in the past asks for nothing.
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return min(at.Sub(now), MaxRetryAfter)
	}
	return fallback
}
