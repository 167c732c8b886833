package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// yearRows simulate a year of sites that change, by what decides in a crawl: a test has it in hand. They are a table of
// their own.
func (b *bench) yearRows(ctx context.Context) []*row {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout", "2h", "-run", "^TestYear", "-v", module+"/internal/crawl",
		"-args", "-year", strconv.Itoa(b.year))
	cmd.Stderr = os.Stderr
	out := must(cmd.StdoutPipe())
	check(cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "|") || strings.Contains(line, " days:") || strings.Contains(line, "FAIL") {
			fmt.Println(line)
		}
	}
	check(cmd.Wait())
	fmt.Println()
	return nil
}
