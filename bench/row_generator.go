package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const generator = "static-sitemap-cli"

// generatorRows compares the start of the server with a generator from npm that does
// the same job once. It need write neither its text form nor to the disk.
func (b *bench) generatorRows(ctx context.Context) ([]row, error) {
	what := fmt.Sprintf("%s files: the same, over npm `%s --no-robots`", number(b.small), generator)
	command, err := b.generator(ctx)
	if err != nil {
		return nil, err
	}
	if command == "" {
		return []row{skipped(what, "≤ 0.1", generator+" is not installed")}, nil
	}
	root, err := b.tree(ctx, b.small)
	if err != nil {
		return nil, err
	}
	args := []string{"--no-robots", "-b", "https://www.example.com", "-r", root, "--format", "xml", "--stdout"}
	out, err := exec.CommandContext(ctx, command, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("running %s: %w", generator, err)
	}
	if listed := bytes.Count(out, []byte("<loc>")); listed != b.small {
		return nil, fmt.Errorf("%s lists %d of %d pages", generator, listed, b.small)
	}
	start, err := b.starter(ctx, root, b.small)
	if err != nil {
		return nil, err
	}
	m, err := alternate(ctx, b, b.runs, start, func() (time.Duration, error) {
		took, err := timed(exec.CommandContext(ctx, command, args...))
		return took.wall, err
	})
	if err != nil {
		return nil, err
	}
	return []row{over(what, m, 0.1)}, nil
}

// generator finds the generator's command, "" where it is not installed.
func (b *bench) generator(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return "", nil
	}
	local := filepath.Join(b.work, "node_modules", ".bin", generator)
	if command, err := exec.LookPath(local); err == nil {
		return command, nil
	}
	if command, err := exec.LookPath(generator); err == nil {
		return command, nil
	}
	if !b.install {
		return "", nil
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", b.work, generator)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("installing %s: %w", generator, err)
	}
	return exec.LookPath(local)
}
