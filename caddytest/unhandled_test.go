package caddytest

import (
	"testing"
)

// TestUnhandledPages: a page that no route answers is none, although a visitor gets an
// empty 200 for it.
func TestUnhandledPages(t *testing.T) {
	s := start(t, `http://localhost:{port} {
		sitemap {
			urls {
				/there.pdf
				/nowhere.pdf
				/nowhere
			}
		}
		handle /there.pdf {
			header Content-Type application/pdf
			respond "%PDF"
		}
	}`, nil)
	s.WantLocs("http://localhost:{port}/sitemap.xml", "http://localhost:{port}/there.pdf")
}
