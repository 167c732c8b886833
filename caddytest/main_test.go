// Package caddytest runs real Caddy with real files and real sockets against what
// the project promises.
package caddytest

import (
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, "^Test(Another.*|Damaged.*|DocumentsCarriedOver|DocumentsRetired|Examples|Extensions|FailedReload|FilesMessy|Homeless|"+
		".*Source|OwnStorage|Pipes|Redeployment|Refresh.*|Reload(FetchesNothing|GoesOn|KeepsSnapshots|UnderLoad|While.*)|Root(ComesAndGoes|GoneAfterRestart)|Sites|StateFolders|URLsReadAgain|Watched.*)$")
}

// server is a running Caddy, with what these tests want of it.
type server struct{ *harness.Server }

func start(t *testing.T, caddyfile string, files map[string]string) *server {
	t.Helper()
	return &server{harness.Start(t, caddyfile, files)}
}

func prepare(t *testing.T, files map[string]string) *server {
	t.Helper()
	return &server{harness.Prepare(t, files)}
}
