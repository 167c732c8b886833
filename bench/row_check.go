package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// checkedBytes is how long the document is that is checked.
const checkedBytes = 100 << 20

// checkRows compares `caddy sitemap check` of a document of 100 MiB with xmllint.
func (b *bench) checkRows(ctx context.Context) ([]row, error) {
	what := "`caddy sitemap check` of a document of 100 MiB, over `xmllint --noout --schema`"
	xmllint, err := exec.LookPath("xmllint")
	if err != nil {
		return []row{skipped(what, "≤ 2", "xmllint is not installed")}, nil
	}
	if b.schema == "" {
		return []row{skipped(what, "≤ 2", "-schema does not name the schema of sitemaps, https://www.sitemaps.org/schemas/sitemap/0.9/sitemap.xsd")}, nil
	}
	binary, err := b.caddy(ctx)
	if err != nil {
		return nil, err
	}
	document, err := b.longDocument()
	if err != nil {
		return nil, err
	}
	var peak []int64
	check := func() (time.Duration, error) {
		took, most, err := b.checkOnce(ctx, binary, document)
		peak = append(peak, most)
		return took, err
	}
	m, err := alternate(ctx, b, b.runs, check, func() (time.Duration, error) {
		took, err := timed(exec.CommandContext(ctx, xmllint, "--nonet", "--noout", "--schema", b.schema, document))
		return took.wall, err
	})
	if err != nil {
		return nil, err
	}
	most := median(peak)
	return []row{over(what, m, 2), {
		what: "peak resident memory of it, all of Caddy's modules included",
		ours: mebibytes(most), reach: "≤ 100 MiB", reached: yes(most <= 100<<20),
	}}, nil
}

// checkOnce checks a document, which is too long and so has errors.
func (b *bench) checkOnce(ctx context.Context, binary, document string) (time.Duration, int64, error) {
	cmd := exec.CommandContext(ctx, binary, "sitemap", "check", document)
	begun := time.Now()
	err := cmd.Run()
	took := time.Since(begun)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return 0, 0, fmt.Errorf("checking %s: %w, and not that it is too long", document, err)
	}
	return took, peakOf(cmd.ProcessState), nil
}

// longDocument makes a urlset that is well-formed, and longer than the protocol allows.
func (b *bench) longDocument() (string, error) {
	name := b.path("long.xml")
	if info, err := os.Stat(name); err == nil && info.Size() >= checkedBytes {
		return name, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	n, _ := w.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	for i := 0; n < checkedBytes; i++ {
		entry := fmt.Sprintf("<url><loc>https://www.example.com%s</loc><lastmod>%s</lastmod></url>\n",
			pagePath(i), time.Unix(modified(i), 0).UTC().Format(time.RFC3339))
		m, _ := w.WriteString(entry)
		n += m
	}
	_, _ = w.WriteString("</urlset>\n")
	return name, errors.Join(w.Flush(), file.Close())
}
