package model

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
)

// engineURL is the URL of a search engine. It is requested through a proxy, so that no name is looked up.
const engineURL = "http://engine.sitemap-model.org/indexnow"

// engine is the search engine and the proxy. It lives outside of the bubble: while a request is under way, the clock
// stands still.
type engine struct {
	mu   sync.Mutex
	sent []string // URLs in the order in which they came
}

// startEngine starts it for the process.
func startEngine() (*engine, func()) {
	e := new(engine)
	server := httptest.NewServer(e)
	_ = os.Setenv("HTTP_PROXY", server.URL)
	return e, server.Close
}

func (e *engine) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var notice struct {
		URLs []string `json:"urlList"`
	}
	if err == nil {
		err = json.Unmarshal(body, &notice)
	}
	if err != nil {
		panic(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = append(e.sent, notice.URLs...)
}

// take returns what came since the last call.
func (e *engine) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	sent := e.sent
	e.sent = nil
	return sent
}
