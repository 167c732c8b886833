package sitemap

import (
	"bytes"
	"encoding/json"
	"net/url"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
)

// People says how the pages for people look. In JSON, it may also be `true`, or `false` for none.
type People struct {
	// What the site is called. Default: the title of the front page, or else the host.
	Title string `json:"title,omitempty"`

	// The URL of a stylesheet that comes after the one of the pages, absolute or as a path of the site, such as
	// `/look.css`. Default: none.
	CSS string `json:"css,omitempty"`

	isOff bool
}

// isOn reports whether there are pages for people; nil: there are none.
func (p *People) isOn() bool { return p != nil && !p.isOff }

// UnmarshalJSON reads a boolean or an object.
func (p *People) UnmarshalJSON(b []byte) error {
	var isOn bool
	if json.Unmarshal(b, &isOn) == nil {
		*p = People{isOff: !isOn}
		return nil
	}
	type plain People
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	return decoder.Decode((*plain)(p))
}

// MarshalJSON writes the shortest form.
func (p *People) MarshalJSON() ([]byte, error) {
	if p.Title == "" && p.CSS == "" {
		return json.Marshal(!p.isOff)
	}
	type plain People
	return json.Marshal((*plain)(p))
}

func (p *People) compile(c *option.Checker) *document.People {
	if !p.isOn() {
		return nil
	}
	u, err := url.Parse(p.CSS)
	isURL := err == nil && (u.Scheme == "" || u.Scheme == "https" || u.Scheme == "http")
	c.Refuse(!isURL, "css of html is '%s': write a URL, such as /look.css", p.CSS)
	return &document.People{Title: p.Title, CSS: p.CSS}
}
