package page

import "net/http"

// IsConclusive reports whether the status of a response says something about the page; 0: there was no response. A
// request that took too long (408), one too many (429) and an error of the server say nothing: a later request may get
// another response. Nor does a malformed request (400), as none is sent: file_server returns that where a disk fails.
func IsConclusive(status int) bool {
	switch status {
	case 0, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return status < http.StatusInternalServerError
}
