package check

// Severity says how bad a finding is. The zero value is [Error].
type Severity uint8

// The severities.
const (
	Error   Severity = iota // readers may refuse the document or the entry
	Warning                 // readers will cope, but it is hardly what was meant
)

var severityNames = [...]string{Error: "error", Warning: "warning"}

// String is "error" or "warning".
func (s Severity) String() string { return severityNames[s] }

// MarshalText is String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`           // as the caller named it
	Line     int      `json:"line,omitempty"` // from 1; 0: it is about the whole file
	Code     string   `json:"code"`           // a stable word in kebab-case, such as "loc-outside-scope"
	Message  string   `json:"message"`
	URL      string   `json:"url,omitempty"` // the page or child that it is about
}

// Summary counts what a [Checker] saw.
type Summary struct {
	Documents int            `json:"documents"`
	URLs      int            `json:"urls"`     // pages listed
	Children  int            `json:"children"` // documents that indexes list
	Errors    int            `json:"errors"`
	Warnings  int            `json:"warnings"`
	Codes     map[string]int `json:"codes,omitempty"` // findings by code
}
