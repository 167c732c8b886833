package accesslog

import (
	"encoding/json"
	"testing"
)

// BenchmarkParseJSON reads what a browser's requests leave in a log.
func BenchmarkParseJSON(b *testing.B) {
	p, line := newParser(b, ""), []byte(caddyLine)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	var v Visit
	for b.Loop() {
		if err := p.Parse(line, &v); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodingJSON is what the other one is measured by.
func BenchmarkEncodingJSON(b *testing.B) {
	line := []byte(caddyLine)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		var v struct {
			TS      float64 `json:"ts"`
			Request struct {
				ClientIP string              `json:"client_ip"`
				Method   string              `json:"method"`
				Host     string              `json:"host"`
				URI      string              `json:"uri"`
				Headers  map[string][]string `json:"headers"`
			} `json:"request"`
			UserID      string              `json:"user_id"`
			Status      int                 `json:"status"`
			RespHeaders map[string][]string `json:"resp_headers"`
		}
		if err := json.Unmarshal(line, &v); err != nil {
			b.Fatal(err)
		}
	}
}
