package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

const module = "github.com/seed3295b519/caddy-sitemap"

// build builds a command of this module into the work folder. Nothing of it is
// timed, and the build cache makes a second time short.
func (b *bench) build(ctx context.Context, pkg, name string) (string, error) {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	binary := b.path(name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, module+"/"+pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

func (b *bench) caddy(ctx context.Context) (string, error) { return b.build(ctx, "cmd/caddy", "caddy") }

// used is what a program took.
type used struct {
	wall, processor time.Duration
}

// find lists a tree's files with their times. What it writes goes to the null device,
// so that neither a pipe nor a reader holds it up.
func find(ctx context.Context, root string) (used, error) {
	cmd := exec.CommandContext(ctx, "find", root, "-type", "f", "-printf", `%p %T@\n`)
	return timed(cmd)
}

func timed(cmd *exec.Cmd) (used, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begun := time.Now()
	err := cmd.Run()
	wall := time.Since(begun)
	if err != nil {
		return used{}, fmt.Errorf("running %s: %w\n%s", cmd.Path, err, stderr.Bytes())
	}
	return used{wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// noFind says why there is no find to compare with; "": there is one. The find of
// other systems than Linux has no -printf.
func noFind(ctx context.Context) string {
	if _, err := find(ctx, os.DevNull); err != nil {
		return "GNU find is not installed"
	}
	return ""
}
