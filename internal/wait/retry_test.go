package wait

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": -1, "soon": -1, "-5": -1, "1.5": -1, "Thu, 01 Jan 1970 00:00:00 GMT": -1,
		"0": 0, " 120 ": 2 * time.Minute, "86401": MaxRetryAfter, "99999999999999999999999": MaxRetryAfter,
		"Sun, 22 Nov 2026 12:00:30 GMT": 30 * time.Second, "Fri, 31 Dec 9999 23:59:59 GMT": MaxRetryAfter,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {value}}, now, -1); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
