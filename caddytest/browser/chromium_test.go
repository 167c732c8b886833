package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// chromium is a tab of Chromium.
type chromium struct {
	t   *testing.T
	ctx context.Context

	mu                 sync.Mutex
	messages, requests []string // since a URL was opened
}

// inChromium opens Chromium, which ends with the test.
func inChromium(t *testing.T) browser {
	t.Helper()
	path := installed(t, "CADDYTEST_BROWSER", "chromium", "chromium-browser", "google-chrome", "chrome")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(path), chromedp.WSURLReadTimeout(patience)) // root has no sandbox
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("closing the browser: %v", err)
		}
		end()
	})
	c := &chromium{t: t, ctx: ctx}
	harness.Must(t, chromedp.Do(ctx)) // without a deadline, as it would be that of the browser
	harness.Must(t, chromedp.Listen(ctx, func(event any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			c.messages = append(c.messages, e.Entry.Text)
		case *runtime.EventConsoleAPICalled:
			c.messages = append(c.messages, fmt.Sprint(e.Args))
		case *runtime.EventExceptionThrown:
			c.messages = append(c.messages, e.ExceptionDetails.Text)
		case *network.EventRequestWillBeSent:
			c.requests = append(c.requests, e.Request.URL)
		}
	}))
	call(c, network.Enable, network.EnableParams{})
	call(c, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	call(c, log.Enable, cdp.Empty{})
	call(c, dom.Disable, cdp.Empty{}) // it takes long for large documents, and these tests do without
	return c
}

func run[T any](c *chromium, action chromedp.Action[T]) T {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	harness.Must(c.t, err)
	return value
}

func call[P, R any](c *chromium, command cdp.Command[P, R], params P) R {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		c.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

func (c *chromium) open(url string) {
	c.t.Helper()
	c.mu.Lock()
	c.messages, c.requests = nil, nil
	c.mu.Unlock()
	run(c, chromedp.Navigate(url))
}

func (c *chromium) evaluate(expression string) json.RawMessage {
	c.t.Helper()
	return run(c, chromedp.Evaluate[[]byte](expression))
}

func (c *chromium) press(keys string) {
	c.t.Helper()
	run(c, chromedp.KeyEvent(keys))
}

func (c *chromium) screens() []screen { return []screen{phone, narrow, desktop} }

func (c *chromium) resize(s screen) {
	c.t.Helper()
	metrics := emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: 1, Mobile: s.isPhone}
	if s.isPhone {
		metrics.ScreenWidth = s.width
		metrics.ScreenHeight = s.height
	}
	call(c, emulation.SetDeviceMetricsOverride, metrics)
}

func (c *chromium) emulate(m media) {
	c.t.Helper()
	call(c, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media:    m.kind,
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: m.scheme}},
	})
}

func (c *chromium) disableScripts() {
	c.t.Helper()
	call(c, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

func (c *chromium) screenshot() []byte {
	c.t.Helper()
	return run(c, chromedp.CaptureScreenshot())
}

func (c *chromium) heard() (messages, requests []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.messages, c.requests
}

func (c *chromium) tree() (nodes []string) {
	c.t.Helper()
	for _, node := range call(c, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if node.Ignored || node.Role == nil || node.Name == nil {
			continue
		}
		var role, name string
		_, _ = json.Unmarshal([]byte(node.Role.Value), &role), json.Unmarshal([]byte(node.Name.Value), &name)
		if role != "InlineTextBox" {
			nodes = append(nodes, strings.Join(strings.Fields(role+" "+name), " "))
		}
	}
	return nodes
}
