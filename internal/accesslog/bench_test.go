package accesslog

import (
	"encoding/json"
	"testing"
)

func benchmarkParse(b *testing.B, format string, lines [][]byte) {
	p := newParser(b, format)
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var v Visit
	for b.Loop() {
		for _, line := range lines {
			if err := p.Parse(line, &v); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkParseJSON reads what a browser's requests leave in a log.
func BenchmarkParseJSON(b *testing.B) {
	benchmarkParse(b, "", [][]byte{[]byte(caddyLine)})
}

// BenchmarkParseSample reads lines whose headers come in many orders.
func BenchmarkParseSample(b *testing.B) {
	benchmarkParse(b, "", sampleLines(b))
}

func BenchmarkParseCombined(b *testing.B) {
	benchmarkParse(b, "", [][]byte{[]byte(combinedLine)})
}

// BenchmarkEncodingJSON is what the others are measured by.
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
