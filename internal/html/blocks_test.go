package html

import (
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// sumOf returns the sum of the blocks that a bar divides; "": there are none.
func sumOf(blocks string) uint64 {
	if blocks == "" {
		return 1
	}
	sum := uint64(0)
	for block := range strings.SplitSeq(blocks, "|") {
		sum += xxhash.Sum64String(block)
	}
	return sum
}

func TestBlocks(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"boundaries", "<p> a \n b<p>c<div>d<b>e</b>f</div>g<br>h<img alt=i>j", "a b|c|def|g|h|i|j"},
		{"equal blocks count each time", "<p>a<p>a<p>b", "a|a|b"},
		{"an element within a word", "<p>w<b>or</b>d<!-- x --><script>x</script>s", "words"},
		{"nothing that is not shown", "<template>x<p>x</template>a<svg><text>x</text></svg>", "a"},

		{"not beside the content", "<header>x</header><nav>x</nav>a<aside>x</aside><footer>x</footer>", "a"},
		{"a title in the header", "<header>x<h1>a</h1>x</header><nav><h1>b</h1></nav>c", "a|b|c"},
		{"a title in the header, and <main>", "<header>x<h1>a</h1></header>x<main>b</main>", "a|b"},
		{"a title and footers", "<h1>a</h1><footer>x</footer>", "a"},
		{"main", "x<main>a<header>b</header><aside>c</aside><nav>x</nav><footer>x</footer></main>x<article>x</article>", "a|b|c"},
		{"main by role", "x<div role=main>a<div>b</div>c</div>x", "a|b|c"},
		{"two of them", "x<main>a</main>x<main>b</main>x", "a|b"},
		{"an empty one", "<main></main>a", "a"},

		{"articles and asides in them", "x<article><h1>a</h1>b<header>y</header><aside>y</aside></article>", "x|a|b"},
		{"an article in <main>", "x<main><article><h1>a</h1>b<header>c</header></article></main>x", "a|b|c"},

		{"links to pages of the site", "a <a href=/b>x</a> b<p><a href='?c'>x</a><p><a href=#d>c</a> <a href=//other.example/>d</a>", "a b|c d"},
		{"dates beside them", "some words<li><a href=/b>x</a> 2026-11-24<li>3 May 2026: <a href=/c>x</a> |", "some words"},
		{"dates in Japanese", "some words<li><a href=/b>x</a> 2024年5月3日", "some words"},
		{"counts in Japanese", "some words<li><a href=/b>x</a> 3名<li><a href=/c>x</a> 第3回", "some words|3名|第3回"},
		{"words beside them", "<p>see <a href=/b>x</a>, and so on", "see , and so on"},
		{"a teaser", "a<div><h2><a href=/b>x</a></h2><p>x</div>b", "a|b"},
		{"a teaser with a date before", "a<div>3 May<h2><a href=/b>x</a></h2><p>x</div>b", "a|b"},
		{"a teaser that another end tag closes", "<section>" + strings.Repeat("a", 65) + "<div><h2><a href=/b>x</a></h2><p>x</section>b", strings.Repeat("a", 65) + "|b"},
		{"no teaser, but an article", "<div><h1><a href=/path>x</a></h1><p>a<h2>b</h2></div>", "a|b"},
		{"no teaser behind text", "<div>" + strings.Repeat("a", 65) + "<h2><a href=/b>x</a></h2><p>b</div>", strings.Repeat("a", 65) + "|b"},
		{"text on both sides of a link", "Read <a href=/b>x</a>more", "Read more"},
		{"text that touches a link", "a<a href=/b>x</a>c<a href=/d> </a>e", "a c e"},
		{"a title that is a link to its page", "<div><h1><a href=a.html>x</a></h1><p>a</div>", "a"},
		{"a list", "a<ul><li><a href=/b>the first one</a><li><a href=/c>the second one</a></ul>", "a|the first one|the second one"},
		{"only links", "<a href=/b>a</a>", "a"},
		{"a list in <main>", "x<main>a<p><a href=/b>the first one</a></main>", "a|the first one"},

		{"text only in footers", "<title>t</title><footer>a</footer><nav>b</nav>", "t"},
		{"title and description only", "<title>t</title><meta name=description content=d><script>x</script>", "t d"},
		{"no text", "<p><script>x</script>", ""},
		{"an empty body", "", ""},

		{"a stamp", "<p>a<div>Last updated 2026-11-24 10:32 UTC</div>", "a|Last updated #-#-# #:# #"},
		{"a stamp and its label", "<dl><dt>Last updated<dd>2026-11-24</dl>", "Last updated|#-#-#"},
		{"a counter", "<p>a<div>128 views</div>", "a|# views"},
		{"numbers before headings", "<h2>2.1 a</h2><h3>Chapter 3: b</h3>", "a|b"},
		{"a date", "<p>The meeting is on 24 November 2026", "The meeting is on 24 November 2026"},
		{"a table of dates", "<table><tr><td>2026-11-24<td>2026-11-25</table>", "2026-11-24|2026-11-25"},
	} {
		if got := read(test.body).Blocks; got != sumOf(test.want) {
			t.Errorf("%s: %s: not the sum of %q", test.name, test.body, test.want)
		}
	}
}

func TestBlocksUnknown(t *testing.T) {
	if got := Header(testPage).Blocks; got != 0 {
		t.Errorf("header only: got %x", got)
	}
	if got := readWith("<p>a", "Content-Encoding", "br").Blocks; got != 0 {
		t.Errorf("encoded: got %x", got)
	}
}

// A banner on all pages makes the same difference on each.
func TestBlocksAreAdditive(t *testing.T) {
	const banner = "<div>We are closed on Monday</div>"
	want := xxhash.Sum64String("We are closed on Monday")
	for _, body := range []string{"<p>a", "<ul><li>b<li>c</ul>", "<div>Last updated 2026-11-24</div>d"} {
		if got := read(banner+body).Blocks - read(body).Blocks; got != want {
			t.Errorf("%s: got another difference", body)
		}
	}
}
