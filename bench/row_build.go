package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// filesAtOnce are so many files as a process may have open on most systems: reading,
// the generator opens all of them at once.
const filesAtOnce = 10_000

// buildRows compare `caddy sitemap build`, whole process and into an empty folder, with a
// generator from npm: by names alone, and where both read what pages say to robots. The
// generator need not write to the disk.
func (b *bench) buildRows(ctx context.Context) ([]row, error) {
	names := fmt.Sprintf("`caddy sitemap build --crawl off` of %s files, over npm `%s --no-robots`", number(b.small), generator)
	few := min(b.small, filesAtOnce)
	pages := fmt.Sprintf("`caddy sitemap build` of %s files, reading and asking for every page, over `%s`, which reads robots metas", number(few), generator)
	command, err := b.generator(ctx)
	if err != nil {
		return nil, err
	}
	if command == "" {
		why := generator + " is not installed"
		return []row{skipped(names, "≤ 0.1", why), skipped(pages, "", why)}, nil
	}
	root, err := b.tree(ctx, b.small)
	if err != nil {
		return nil, err
	}
	caddy, err := b.caddy(ctx)
	if err != nil {
		return nil, err
	}
	smaller, err := b.tree(ctx, few)
	if err != nil {
		return nil, err
	}
	generate := func(root string, more ...string) func() (time.Duration, error) {
		args := append([]string{"-b", "https://www.example.com", "-r", root, "--format", "xml", "--stdout"}, more...)
		return func() (time.Duration, error) {
			took, err := timed(exec.CommandContext(ctx, command, args...))
			return took.wall, err
		}
	}
	byName, err := alternate(ctx, b, b.runs, b.builder(ctx, caddy, root, b.small, "off"), generate(root, "--no-robots"))
	if err != nil {
		return nil, err
	}
	read, err := alternate(ctx, b, b.runs, b.builder(ctx, caddy, smaller, few, "on"), generate(smaller))
	if err != nil {
		return nil, err
	}
	second := oneOver(pages, read, 0, 1, 1)
	second.reach, second.reached = "", ""
	return []row{over(names, byName, 0.1), second}, nil
}

// builder builds the sitemap of a tree of so many pages into an empty folder.
func (b *bench) builder(ctx context.Context, caddy, root string, pages int, ask string) func() (time.Duration, error) {
	out := b.path("built")
	return func() (time.Duration, error) {
		if err := os.RemoveAll(out); err != nil {
			return 0, err
		}
		begun := time.Now()
		printed, err := exec.CommandContext(ctx, caddy, "sitemap", "build", "--root", root, "--base-url", "https://www.example.com", "--out", out, "--crawl", ask, "--json").Output()
		took := time.Since(begun)
		if err != nil {
			return 0, fmt.Errorf("building: %w", err)
		}
		var summary struct{ Sites []struct{ Pages int } }
		if err := json.Unmarshal(printed, &summary); err != nil {
			return 0, err
		}
		if len(summary.Sites) != 1 || summary.Sites[0].Pages != pages {
			return 0, fmt.Errorf("built are %v, not %d pages", summary.Sites, pages)
		}
		return took, nil
	}
}
