package urllist

import (
	"reflect"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func TestExtensions(t *testing.T) {
	video := func(more string) string {
		return "<v:video><v:thumbnail_loc>https://t.example/t</v:thumbnail_loc><v:title> A </v:title><v:description>b</v:description>" + more + "</v:video>"
	}
	kept := func(more string) *page.Extensions {
		return &page.Extensions{Videos: []string{
			"<video:thumbnail_loc>https://t.example/t</video:thumbnail_loc><video:title>A</video:title><video:description>b</video:description>" + more}}
	}
	all := html.Options{Alternates: true, Images: true, Videos: true}
	for _, test := range []struct {
		name, in string
		extract  html.Options
		want     *page.Extensions
		dropped  int
	}{
		{"nothing", "", all, nil, 0},
		{"not wanted", video("") + "<i:image><i:loc>/i</i:loc></i:image>", html.Options{Videos: true}, kept(""), 1},
		{"alternates", `<x:link rel="alternate" hreflang="de" href="b"/><x:link rel="alternate" hreflang="DE" href="/c"/><x:link rel="alternate" media="m" href="/m"/>` +
			`<x:link rel="next" hreflang="fr" href="/"/><x:link rel="alternate" hreflang="es" href="mailto:a@b"/>`, all,
			&page.Extensions{Alternates: []page.Alternate{{Lang: "de", URL: base + "/a/b"}}}, 0},
		{"images", "<i:image><i:loc> /i?a=1&amp;b=2 </i:loc></i:image><i:image><i:loc>/i?a=1&amp;b=2#c</i:loc></i:image><i:image/>", all,
			&page.Extensions{Images: []string{base + "/i?a=1&b=2"}}, 0},
		{"videos that are none", "<v:video><v:title>A</v:title></v:video>" + strings.Replace(video(""), "https:", "ftp:", 1), all, nil, 0},
		{"what is not valid", video(`<v:duration>28801</v:duration><v:live>maybe</v:live><v:publication_date>2024-13-01</v:publication_date>` +
			`<v:restriction>Germany</v:restriction><v:price currency="EUR">1</v:price><v:tag/>`), all, kept(""), 0},
		{"what is", video(`<v:live>no</v:live><v:duration>28800</v:duration><v:publication_date>2024-12-31T23:59:59+01:00</v:publication_date>`), all,
			kept("<video:duration>28800</video:duration><video:publication_date>2024-12-31T23:59:59+01:00</video:publication_date><video:live>no</video:live>"), 0},
		{"a long description", strings.Replace(video(""), ">b<", ">"+strings.Repeat("ü", 2049)+"<", 1), all,
			&page.Extensions{Videos: []string{strings.Replace(kept("").Videos[0], ">b<", ">"+strings.Repeat("ü", 2048)+"<", 1)}}, 0},
		{"a long video", strings.Replace(video(""), ">b<", ">"+strings.Repeat("&amp;", 2048)+"<", 1), all, nil, 0},
	} {
		reader := Reader{Base: base, Extract: test.extract}
		var got *page.Extensions
		reader.Yield = func(p page.Page) error { got = p.Extensions; return nil }
		err := reader.Read(t.Context(), strings.NewReader("<urlset><url><loc>"+base+"/a/</loc>"+test.in+"</url></urlset>"))
		if err != nil || !reflect.DeepEqual(got, test.want) || reader.Dropped != test.dropped {
			t.Errorf("%s: got %+v, %d dropped, error %v, want %+v, %d", test.name, got, reader.Dropped, err, test.want, test.dropped)
		}
	}
}
