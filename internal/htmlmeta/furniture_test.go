package htmlmeta

import (
	"strings"
	"testing"
)

func TestFurnitureOfClass(t *testing.T) {
	for class, want := range map[string]zoneKind{
		"footer": notice, "Footer": notice, "site-footer": notice, "theme-doc-footer": notice, "siteFooter": notice,
		"a b copyright": notice, "md_footer": notice, "-footer": notice, "topNav": menu, "navbar": menu, "doc-sidebar": menu,

		"": content, "has-sidebar": content, "no-footer": content, "page-with-sidebar": content, "hasSidebar": content,
		"a-b-c-footer": content, "footer-column": content, "navbar-page": content, "footers": content, "header": content,
		"footer-": content, "unrelated": content, "naval": content, "article review": content, "shareholders": content,
		strings.Repeat("x", 100): content, strings.Repeat("x-", 100): content, "-": content,
	} {
		if got := furnitureOfClass([]byte(class)); got != want {
			t.Errorf("%q: got %d, want %d", class, got, want)
		}
	}
}

func TestFurnitureOfID(t *testing.T) {
	for id, want := range map[string]zoneKind{
		"footer": notice, "site-footer": notice, "page_footer": notice, "main-nav": menu, "mainNav": menu, "menu": menu,
		"the-footer": content, "cookie-recipes": content, "has-sidebar": content, "": content, "site-main-footer": content,
	} {
		if got := furnitureOfID([]byte(id)); got != want {
			t.Errorf("%q: got %d, want %d", id, got, want)
		}
	}
}

func TestFurniture(t *testing.T) {
	const prose = "ten words of prose that say what this is about"
	const text = "<p>" + prose + "<p>" + prose + "<p>" + prose
	const counted = "|" + prose + "|" + prose + "|" + prose
	for _, test := range []struct{ name, body, want string }{
		{"a footer", text + "<div class=footer>f</div>", counted[1:]},
		{"by id", text + "<div id=site-footer>f</div>", counted[1:]},
		{"what is in it", text + "<div class=footer><p>f<div>f</div><ul><li>f</ul></div>a", counted[1:] + "|a"},
		{"in <main>", "x<main>" + text + "<div class=breadcrumbs>f</div></main>x", counted[1:]},
		{"in an article", "x<article><h1>a</h1>" + text + "<div class=share>f</div></article><div class=share>x</div>x", "a" + counted},
		{"a paragraph", text + "<p class=copyright>f<br>f<p>a", counted[1:] + "|a"},
		{"a list item", text + "<ul><li class=footer>f<li>a</ul>", counted[1:] + "|a"},
		{"a menu", text + "<div class=navbar><a href=a>f</a> <a href=b>f</a></div>", counted[1:]},
		{"one that does not end", text + "<div class=footer>f<p>f", counted[1:]},

		{"a page that has a sidebar", "<body class=has-sidebar>" + text, counted[1:]},
		{"a page by the name of its menu", `<body class="page-navbar">` + text, counted[1:]},
		{"a manual in a sidebar", "<div class=sidebar>" + text + "</div>a", counted[1:] + "|a"},
		{"prose in a sidebar", text + "<div class=sidebar>a</div>", counted[1:] + "|a"},
		{"the menu of a restaurant", text + "<div id=menu>Soup 5</div>", counted[1:] + "|Soup 5"},
		{"a section on menus", text + "<section id=toolbar><h2>a</h2>b</section>", counted[1:] + "|a|b"},
		{"a footer with headings", text + "<div class=footer><h5>f</h5>f</div>", counted[1:]},
		{"a review", text + "<article class=review>a</article>", counted[1:] + "|a"},
		{"a heading", text + "<h2 class=header>a</h2><h2 class=banner>b</h2>", counted[1:] + "|a|b"},
		{"a header", text + "<div class=header>a</div>", counted[1:] + "|a"},
		{"a banner with the title", "<div class=banner><h1>a</h1>b</div>" + text, "a|b" + counted},
		{"around <main>", "<div class=nav><main>a</main></div>", "a"},
		{"more than a quarter", text + "<p class=banner>" + prose + " " + prose, counted[1:] + "|" + prose + " " + prose},
		{"a few words of a small page", "<p>" + prose + "<p class=banner>" + prose, prose},
		{"more than 200 words", strings.Repeat(text, 30) + "<div class=footer>" + strings.Repeat("w ", 250) + "</div>",
			strings.Repeat(counted, 30)[1:] + "|" + strings.TrimSpace(strings.Repeat("w ", 250))},
		{"a menu of more than half", "<p>" + prose + "<div class=menu><a href=a>" + prose + " " + prose + "</a></div>", prose + "|" + prose + " " + prose},
		{"less than a third is left", "<p>a b c d<div class=nav><a href=a>e f g h</a></div><div class=nav><a href=b>i j k l</a></div>" +
			"<div class=nav><a href=c>m n o p</a></div>", "a b c d|e f g h|i j k l|m n o p"},
		{"text only in footers", "<div class=footer>a</div><div class=copyright>b</div>", "a|b"},
	} {
		if got := read(test.body).Blocks; got != sumOf(test.want) {
			t.Errorf("%s: %s: not the sum of %q", test.name, test.body, test.want)
		}
	}
}

func TestFurnitureIsBounded(t *testing.T) {
	body := strings.Repeat("<div class=footer>a", 2*maxZones) + strings.Repeat("</div><p class=nav>b", 2*maxZones)
	r := NewParser(Options{})
	r.Parse([]byte(body), testPage)
	if got := len(r.zones); got > maxZones {
		t.Errorf("got %d zones", got)
	}
}
