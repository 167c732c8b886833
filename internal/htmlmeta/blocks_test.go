package htmlmeta

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
		{"a title in the header", "<header>x<h1>a</h1>x</header><nav><h1>x</h1></nav>b", "a|b"},
		{"main", "x<main>a<header>b</header><aside>c</aside><nav>x</nav><footer>x</footer></main>x<article>x</article>", "a|b|c"},
		{"main by role", "x<div role=main>a<div>b</div>c</div>x", "a|b|c"},
		{"two of them", "x<main>a</main>x<main>b</main>x", "a|b"},
		{"an empty one", "<main></main>a", "a"},

		{"an article with the title", "<p>many more words<article><h1>a</h1>b</article>", "a|b"},
		{"its own header and aside", "x<article><header>a</header><aside>b</aside>c<nav>x</nav><footer>x</footer><h1>d</h1></article>x", "a|b|c|d"},
		{"an article without it", "<p>few<article>a b c d e f</article>", "few|a b c d e f"},
		{"a review", "<h1>a</h1><p>the product, and what it is<article class=review>b</article>", "a|the product, and what it is|b"},
		{"several", "a<article><h1>b</h1></article>c<article><h1>d</h1></article>", "a|b|c|d"},
		{"teasers", "the text of the front page<article>a</article><article>b</article>", "the text of the front page|a|b"},
		{"an article within one", "few<article><h1>a</h1><article>b</article>c</article>few", "a|b|c"},
		{"a teaser beside the content", "a<aside><article>x</article></aside>", "a"},
		{"one that does not end", "x<article><h1>a</h1><p>b", "a|b"},

		{"text only in footers", "<footer>a</footer><nav>b</nav>", "a|b"},
		{"title and description only", "<title>t</title><meta name=description content=d><script>x</script>", "t d"},
		{"no text", "<p><script>x</script>", ""},
		{"an empty body", "", ""},

		{"a stamp", "<p>a<div>Last updated 2026-11-24 10:32 UTC</div>", "a|Last updated "},
		{"a stamp and its label", "<dl><dt>Last updated<dd>2026-11-24</dl>", "Last updated|"},
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
