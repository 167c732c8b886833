package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// largeRows has a server list the pages of the synthetic source, in bounded memory,
// and looks through all of its sitemap.
func (b *bench) largeRows(ctx context.Context) ([]row, error) {
	binary, err := b.build(ctx, "bench/synthetic", "caddy-synthetic")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	config, err := syntheticConfig(addr, b.pages)
	if err != nil {
		return nil, err
	}
	s, err := b.launch(binary, "large.json", config, "GOMEMLIMIT=1GiB")
	if err != nil {
		return nil, err
	}
	defer s.stop()
	took, err := s.first(ctx, "http://"+addr+"/sitemap.xml")
	if err != nil {
		return nil, err
	}
	peak := ""
	switch most, err := peakMemory(s.pid()); {
	case errors.Is(err, errNotHere):
	case err != nil:
		return nil, err
	default:
		peak = ", peak " + mebibytes(most)
	}
	b.say("  the first 200 after %s%s; reading all of it", seconds(took), peak)
	shards, err := verify(ctx, "http://"+addr, b.pages)
	if err != nil {
		return nil, fmt.Errorf("wrong sitemap: %w", err)
	}
	return []row{{
		what:    number(b.pages) + " pages of a synthetic sorted source, GOMEMLIMIT=1GiB",
		ours:    fmt.Sprintf("%s to the first 200%s; shards: %d", seconds(took), peak, shards),
		reach:   "a snapshot, all shards valid",
		reached: yes(true),
	}}, nil
}

type object = map[string]any

func syntheticConfig(addr string, pages int) (string, error) {
	config, err := json.MarshalIndent(object{
		"admin": object{"disabled": true, "config": object{"persist": false}},
		"apps": object{"sitemap": object{"state": "off"}, "http": object{"servers": object{"bench": object{
			"listen":          []string{addr},
			"automatic_https": object{"disable": true},
			"routes": []object{{
				"match": []object{{"host": []string{"127.0.0.1"}}},
				"handle": []object{{
					"handler":  "sitemap",
					"max_urls": pages,
					"crawl":    object{"off": true}, // nothing serves these pages
					"sources":  []object{{"source": "synthetic", "pages": pages}},
				}},
			}},
		}}}},
	}, "", "\t")
	return string(config), err
}
