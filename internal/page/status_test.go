package page

import "testing"

func TestIsConclusive(t *testing.T) {
	for status, want := range map[int]bool{
		0:   false,
		200: true,
		204: true,
		301: true,
		304: true,
		400: false,
		401: true,
		403: true,
		404: true,
		407: true,
		408: false,
		409: true,
		410: true,
		428: true,
		429: false,
		430: true,
		451: true,
		499: true,
		500: false,
		503: false,
		504: false,
		599: false,
	} {
		if got := IsConclusive(status); got != want {
			t.Errorf("%d: got %t", status, got)
		}
	}
}
