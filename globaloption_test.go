package sitemap

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

func TestExpandState(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("SITEMAP_STATE", folder)
	t.Setenv("SITEMAP_OFF", "off")
	t.Setenv("SITEMAP_NONE", "")
	below, err := filepath.Abs("below")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ state, want, err string }{
		{"", "", ""},
		{"off", "off", ""},
		{folder, folder, ""},
		{"./below/", below, ""},
		{"{env.SITEMAP_STATE}", folder, ""},
		{"{env.SITEMAP_STATE}/a/../b", filepath.Join(folder, "b"), ""},
		{"{env.SITEMAP_OFF}", "off", ""},
		{"{env.SITEMAP_NONE}/sitemap", "", "evaluated placeholder {env.SITEMAP_NONE} is empty"},
		{"/var/{no.such}", "", "unrecognized placeholder {no.such}"},
		{"/var/{http.request.host}", "", "only global ones such as {env.*} are replaced"},
		{"Off", "", "did you mean 'off'?"},
		{"below", "", "a folder such as /var/lib/caddy/sitemap is wanted, or off"},
	} {
		got, err := expandState(test.state, caddy.NewReplacer())
		if got != test.want {
			t.Errorf("%q: got %q, want %q", test.state, got, test.want)
		}
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.HasSuffix(err.Error(), test.err)) {
			t.Errorf("%q: got %v, want %q", test.state, err, test.err)
		}
	}
}
