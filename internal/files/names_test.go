package files

import "testing"

func TestSpecial(t *testing.T) {
	for name, want := range map[string]string{
		"404.html": errorPage, "400.htm": errorPage, "599.XHTML": errorPage, "50x.html": errorPage, "5XX.html": errorPage, "4x4.html": errorPage, "503.php": errorPage,
		"399.html": listed, "600.html": listed, "4040.html": listed, "40.html": listed, "404": listed, "404.pdf": listed, "404.en.html": listed, "4ab.html": listed,
		"_": listed, "_404.html": listed,
		"google0123456789abcdef.html": ownershipFile, "GOOGLE0123456789ABCDEF.HTML": ownershipFile, "google0123456789abcde.html": listed, "google0123456789abcdeg.html": listed, "google0123456789abcdef.htm": listed,
		"yandex_0123456789abcdef.html": ownershipFile, "yandex.html": listed,
		"pinterest-1a2b3.html": ownershipFile, "pinterest-boards.html": listed,
		"BingSiteAuth.xml": ownershipFile, "bingsiteauth.xml.html": listed,
		"baidu_verify_codeva-AbCd.html": ownershipFile, "baidu_verify_.html": listed,
		"naver0123456789abcdef0123456789abcdef.html": ownershipFile, "naver.html": listed,
		"a": listed, "é.html": listed, "\xff": listed,
	} {
		if got := special(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
