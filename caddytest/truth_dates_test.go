package caddytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestTimesOfDeployments: a time that ten files or more, and a fifth of the new ones or more,
// share within ten minutes is that of a deployment, and no page's date, however the page
// became known.
func TestTimesOfDeployments(t *testing.T) {
	deployed := func(i int) time.Time { return harness.DayOf(1000).Add(time.Duration(i) * 50 * time.Second) }
	file := func(i int) string { return fmt.Sprintf("%03d.html", i) }
	for name, test := range map[string]struct {
		deployed, others int
		settings         string
		content          func(i int) string
		path             func(i int) string // as it is listed
		dated            bool               // those of the deployment
	}{
		"ten, and a fifth":           {deployed: 12, others: 48},
		"ten, and less than a fifth": {deployed: 12, others: 49, dated: true},
		"nine":                       {deployed: 9, others: 20, dated: true},
		"all":                        {deployed: 12},
		"learnt through canonicals": {
			deployed: 12, others: 40, path: func(i int) string { return "/other/" + file(i) },
			content: func(i int) string { return naming("/other/"+file(i), linking(fmt.Sprint("page ", i))) },
		},
		"a home page, learnt through its canonical": {
			deployed: 12, others: 40,
			content: func(i int) string {
				if i == 0 {
					return naming("/other/"+file(0), linking("home"))
				}
				return linking(fmt.Sprint("page ", i))
			},
			path: func(i int) string {
				if i == 0 {
					return "/other/" + file(0)
				}
				return "/" + file(i)
			},
		},
		"learnt through links": {
			deployed: 12, others: 40, settings: "links\nurls {\n/other/" + file(0) + "\n}",
			content: func(i int) string {
				var links []string
				for j := 1; i == 0 && j < 52; j++ {
					links = append(links, file(j))
				}
				return linking(fmt.Sprint("page ", i), links...)
			},
			path: func(i int) string { return "/other/" + file(i) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			want := make(map[string]string)
			for i := range test.deployed + test.others {
				when, content, path := harness.DayOf(i), linking(fmt.Sprint("page ", i)), "/"+file(i)
				if i < test.deployed {
					when = deployed(i)
				}
				if test.content != nil {
					content = test.content(i)
				}
				if test.path != nil {
					path = test.path(i)
				}
				if want[path] = harness.Stamp(when); i < test.deployed && !test.dated {
					want[path] = ""
				}
				s.Put("site/"+file(i), content, when)
			}
			if err := s.Load(harness.Local + " {\n root * {dir}/site\n sitemap {\n refresh 1s\n" + test.settings +
				"\n }\n handle_path /other/* {\n file_server\n }\n file_server\n}"); err != nil {
				t.Fatal(err)
			}
			s.WantDates(harness.Local, want)
			s.Quietly(1)
			s.WantDates(harness.Local, want)
		})
	}
}
