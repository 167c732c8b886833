package model

import (
	"slices"
	"strings"
	"time"
)

// judgeAnnounced is property 6, of what was announced since the last sample.
func (o *oracle) judgeAnnounced() {
	for _, url := range searchEngine.take() {
		path := strings.TrimPrefix(url, origin)
		o.note("%s was announced", path)
		h := o.histories[path]
		if h == nil || len(h.news) == 0 {
			o.fail(6, "%s was announced, of which there is nothing new", path)
			continue
		}
		h.told = time.Now()
		h.news = slices.DeleteFunc(h.news[1:], func(at time.Time) bool {
			return min(time.Since(at), o.up(), o.faults.over()) > o.noticedWithin(path)
		})
	}
}

// judgeUntold is property 6 at the end, of pages of which something is to have been announced: nothing is of the first crawl.
func (o *oracle) judgeUntold() {
	for path, h := range o.histories {
		last := h.changes[len(h.changes)-1]
		date := o.listed[path]
		isNew := h.changes[0].After(o.crawled)
		wasDated := last.Sub(h.changes[0]) > spread // else it is a part of its publication, with the longest interval
		isCorrected := wasDated && last.After(o.crawled) && date >= last.UTC().Format(time.DateOnly) && o.site.pages[path].isFile
		if h.isGood && (isNew && h.told.Before(h.changes[0]) || isCorrected && h.told.Before(last)) {
			o.fail(6, "%s was not announced, which is there since %s and changed at %s", path, stamp(h.changes[0]), stamp(last))
		}
	}
}

// mayBeTold lets pages be announced once more, of which nothing is new.
func (o *oracle) mayBeTold(paths ...string) {
	for _, path := range paths {
		if h := o.histories[path]; h != nil {
			h.news = append(h.news, time.Now())
		}
	}
}
