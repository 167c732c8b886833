package html

import (
	"strings"
	"testing"
)

// edited is a page on which each edit of TestEdits is made.
const edited = `<!doctype html><html><head><title>Pumps</title><meta name=description content="All pumps"></head><body>
<div class=top><a href=/>Home</a> <a href=/pumps>Pumps</a></div>
<div><h1>Pumps of the north</h1>
<p>The old pump stands in the yard behind the house, and has done so for 40 years.
<p>It costs 1,250 EUR, or <a href="https://shop.example/">less elsewhere</a>.
<h2>1. Parts</h2><ul><li>a handle<li>a spout<li>two seals</ul>
<table><tr><th>Size<th>Weight<tr><td>small<td>12 kg<tr><td>large<td>30 kg</table>
<pre>pump --speed 3
pump --stop</pre>
<figure><img src=/a.jpg alt="A red pump"><figcaption>The pump in 1999</figcaption></figure>
<p>See <a href=/wells>the wells</a> for where the water comes from.</div>
<div><h3>Related</h3><ul><li><a href=/a>Buckets and ropes</a> 3 May 2026<li><a href=/b>Wheels</a></ul>
<div><h4><a href=/c>Wells of the south</a></h4><p>They are deep, and nobody knows how deep.</div></div>
<div>128 views · 3 comments</div><div>5 days ago</div><div>Part 3 of 7</div><div>Last updated 2026-11-24 10:32</div><div>© 2026 Example</div>
</body></html>`

// TestEdits: what readers come for dates a page, and what surrounds it does not.
func TestEdits(t *testing.T) {
	for _, test := range []struct {
		name, old, new string
		want           bool
	}{
		{"word", "stands in the yard", "stands in the garden", true},
		{"number", "for 40 years", "for 41 years", true},
		{"price", "1,250 EUR", "1,350 EUR", true},
		{"cell", "<td>30 kg", "<td>32 kg", true},
		{"heading", "Pumps of the north", "Pumps of the west", true},
		{"heading of a part", "1. Parts", "1. Spares", true},
		{"item", "<li>two seals", "<li>two seals<li>a bolt", true},
		{"code", "--speed 3", "--speed 4", true},
		{"alternative text", "A red pump", "A blue pump", true},
		{"caption", "The pump in 1999", "The pump in 2001", true},
		{"removal", "<p>See <a href=/wells>the wells</a> for where the water comes from.", "", true},
		{"words of a link to another site", "less elsewhere", "more elsewhere", true},
		{"words around a link", "where the water comes from", "where the rain comes from", true},

		{"title", "<title>Pumps", "<title>All pumps", false},
		{"description", "All pumps", "Some pumps", false},
		{"link target", "href=/wells", "href=/deep-wells", false},
		{"words of a link", "the wells", "our wells", false},
		{"class", "class=top", "class=header", false},
		{"white space", "stands in", "stands\n\t in", false},
		{"menu", "<a href=/pumps>Pumps</a>", "<a href=/pumps>Our pumps</a>", false},
		{"related page", "<a href=/b>Wheels</a>", "<a href=/d>Carts</a>", false},
		{"date of a related page", "3 May 2026", "4 May 2026", false},
		{"teaser", "nobody knows how deep", "nobody knows why", false},
		{"number of a heading", "1. Parts", "2. Parts", false},
		{"views", "128 views", "129 views", false},
		{"age", "5 days ago", "6 days ago", false},
		{"position", "Part 3 of 7", "Part 3 of 8", false},
		{"stamp", "2026-11-24 10:32", "2026-11-25 11:47", false},
		{"year of the copyright", "© 2026", "© 2027", false},
	} {
		if !strings.Contains(edited, test.old) {
			t.Fatalf("%s: no %q", test.name, test.old)
		}
		changed := strings.Replace(edited, test.old, test.new, 1)
		if test.name == "description" {
			changed = strings.Replace(edited, `content="All pumps"`, `content="Some pumps"`, 1)
		}
		if got := read(changed).Blocks != read(edited).Blocks; got != test.want {
			t.Errorf("%s: dated %t", test.name, got)
		}
	}
	moved := "<div><p>One paragraph.<p>Another one.</div>"
	back := "<div><p>Another one.<p>One paragraph.</div>"
	if read(moved).Blocks != read(back).Blocks {
		t.Error("a moved paragraph is dated")
	}
}
