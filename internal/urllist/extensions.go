package urllist

import (
	"encoding/xml"
	"regexp"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const (
	maxHreflang = 35      // bytes (RFC 5646, section 4.4.1)
	maxVideo    = 8 << 10 // bytes; longer ones are dropped
)

// extended is what an entry says beyond the protocol's own elements: xhtml:link, image:image and video:video.
type extended struct {
	Links []struct {
		Rel  string `xml:"rel,attr"`
		Lang string `xml:"hreflang,attr"`
		Href string `xml:"href,attr"`
	} `xml:"link"`
	Images []string `xml:"image>loc"`
	Videos []struct {
		Parts []videoPart `xml:",any"`
	} `xml:"video"`
}

// videoPart is an element of a video.
type videoPart struct {
	XMLName xml.Name
	Text    string `xml:",chardata"`
}

// read returns what the entry of the page at a path says, as far as it is wanted; nil: nothing. isDropped: it says more.
func (x *extended) read(base, path string, wants html.Options) (kept *page.Extensions, isDropped bool) {
	var found page.Extensions
	if wants.Alternates {
		found.Alternates = x.alternates(base, path)
	}
	if wants.Images {
		found.Images = x.images(base, path)
	}
	if wants.Videos {
		found.Videos = x.videos()
	}
	isDropped = len(x.Links) > 0 && !wants.Alternates || len(x.Images) > 0 && !wants.Images || len(x.Videos) > 0 && !wants.Videos
	if found.Empty() {
		return nil, isDropped
	}
	kept = new(page.Extensions)
	kept.Add(&found) // each once, within the bounds
	return kept, isDropped
}

func (x *extended) alternates(base, path string) (all []page.Alternate) {
	for _, link := range x.Links {
		url := html.Absolute(base, path, link.Href)
		lang := strings.TrimSpace(link.Lang)
		isVersion := link.Rel == "alternate" && lang != "" && len(lang) <= maxHreflang
		if isVersion && url != "" {
			all = append(all, page.Alternate{Lang: lang, URL: url})
		}
	}
	return all
}

func (x *extended) images(base, path string) (all []string) {
	for _, loc := range x.Images {
		if url := html.Absolute(base, path, loc); url != "" {
			all = append(all, url)
		}
	}
	return all
}

func (x *extended) videos() (all []string) {
	for _, video := range x.Videos {
		if text := videoOf(video.Parts); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// videoElement is one that a video may have.
type videoElement struct {
	name    string
	pattern *regexp.Regexp // of what is kept of its text
}

var (
	videoURL   = regexp.MustCompile(`^https?://[^\s"<>]+$`)
	videoYesNo = regexp.MustCompile(`^(yes|Yes|YES|no|No|NO)$`)
	videoDate  = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-](0\d|1[0-3]):[0-5]\d)?)?$`)
)

// videoElements are those of the schema that say what a video is, where and when, in its order: the first three are required
// (https://www.google.com/schemas/sitemap-video/1.1/sitemap-video.xsd).
var videoElements = []videoElement{
	{"thumbnail_loc", videoURL},
	{"title", regexp.MustCompile(`(?s)^.{1,100}`)},
	{"description", regexp.MustCompile(`(?s)^.{1,1000}.{0,1000}.{0,48}`)},
	{"content_loc", videoURL},
	{"player_loc", videoURL},
	{"duration", regexp.MustCompile(`^([01]?\d{1,4}|2[0-7]\d{3}|28[0-7]\d\d|28800)$`)},
	{"expiration_date", videoDate},
	{"publication_date", videoDate},
	{"family_friendly", videoYesNo},
	{"requires_subscription", videoYesNo},
	{"live", videoYesNo},
}

// videoText is what text becomes in XML.
var videoText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// videoOf returns the elements of a video as a sitemap is to have them; "": it is none that search engines take.
func videoOf(parts []videoPart) string {
	var b strings.Builder
	for i, element := range videoElements {
		found := element.in(parts)
		isRequired := i < 3
		if isRequired && found == "" {
			return ""
		}
		b.WriteString(found)
	}
	if b.Len() > maxVideo {
		return ""
	}
	return b.String()
}

// in returns the element as the parts of a video have it first; "": not at all, or not validly.
func (e *videoElement) in(parts []videoPart) string {
	at := slices.IndexFunc(parts, func(p videoPart) bool { return p.XMLName.Local == e.name })
	if at < 0 {
		return ""
	}
	text := e.pattern.FindString(strings.TrimSpace(parts[at].Text))
	if text == "" {
		return ""
	}
	return "<video:" + e.name + ">" + videoText.Replace(text) + "</video:" + e.name + ">"
}
