package sitemapxml

import (
	"encoding/xml"
	"testing"
)

// locsOf are the locs of a urlset, as encoding/xml reads them.
func locsOf(t *testing.T, document []byte) (locs []string) {
	t.Helper()
	var read struct {
		Pages []struct {
			Loc string `xml:"loc"`
		} `xml:"url"`
	}
	if err := xml.Unmarshal(document, &read); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	for _, p := range read.Pages {
		locs = append(locs, p.Loc)
	}
	return locs
}
