package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// firefox is a tab of Firefox, which is told what to do by WebDriver BiDi (https://www.w3.org/TR/webdriver-bidi/).
type firefox struct {
	t       *testing.T
	conn    *websocket.Conn
	answers *json.Decoder // from conn
	last    int           // number of the last command
	page    string        // context of the tab
	window  string        // context of the window around it, whose scripts may do what the developer tools do

	messages, requests []string // since a URL was opened
}

// inFirefox opens Firefox, which ends with the test.
func inFirefox(t *testing.T) browser {
	t.Helper()
	// With it, the tests of this package take four times as much processor time.
	const variable = "CADDYTEST_FIREFOX"
	if os.Getenv(variable) == "" {
		t.Skip(variable + " names no Firefox")
	}
	path := installed(t, variable)
	const origin = "http://localhost" // of the test: a WebSocket has one
	address := startFirefox(t, path, "--remote-allow-system-access", "--remote-allow-origins="+origin)
	conn, err := websocket.Dial(address+"/session", "", origin)
	harness.Must(t, err)
	f := &firefox{t: t, conn: conn, answers: json.NewDecoder(conn)}
	f.command("session.new", fields{"capabilities": fields{}}, nil)
	f.page = f.context(fields{})
	f.window = f.context(fields{"moz:scope": "chrome"})
	f.evaluateIn(f.window, "gBrowser.selectedBrowser.focus()") // not the address bar
	f.command("session.subscribe", fields{"events": []string{"log.entryAdded", "network.beforeRequestSent"}}, nil)
	f.command("network.setCacheBehavior", fields{"cacheBehavior": "bypass"}, nil)
	return f
}

// startFirefox starts Firefox with a profile of its own, and returns the address of its WebSocket.
func startFirefox(t *testing.T, path string, args ...string) string {
	t.Helper()
	profile := t.TempDir()
	cmd := exec.Command(path, append(args, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0")...)
	cmd.Env = append(os.Environ(), "HOME="+profile)
	output, err := cmd.StderrPipe()
	harness.Must(t, err)
	harness.Must(t, cmd.Start())
	lines := bufio.NewScanner(output)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, output) // until all of its processes have ended, which write to the profile
		_ = cmd.Wait()
	})
	stuck := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	var said []string
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "WebDriver BiDi listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return address
		}
		said = append(said, lines.Text())
	}
	t.Fatalf("Firefox does not listen: %q", said)
	return ""
}

// fields are those of a JSON object.
type fields map[string]any

// command has Firefox do something, and decodes the result. Events that come before it are noted.
func (f *firefox) command(method string, params fields, result any) {
	f.t.Helper()
	f.last++
	harness.Must(f.t, f.conn.SetDeadline(time.Now().Add(patience)))
	harness.Must(f.t, websocket.JSON.Send(f.conn, fields{"id": f.last, "method": method, "params": params}))
	for {
		var answer struct {
			ID             int
			Type           string
			Error, Message string
			Method         string
			Params, Result json.RawMessage
		}
		if err := f.answers.Decode(&answer); err != nil {
			f.t.Fatalf("%s: %v", method, err)
		}
		if answer.Type == "event" {
			f.note(answer.Method, answer.Params)
			continue
		}
		if answer.Type == "error" {
			f.t.Fatalf("%s: %s: %s", method, answer.Error, answer.Message)
		}
		if result != nil {
			harness.Must(f.t, json.Unmarshal(answer.Result, result))
		}
		return
	}
}

// note notes an event.
func (f *firefox) note(method string, params json.RawMessage) {
	f.t.Helper()
	var event struct {
		Text    string
		Request struct{ URL string }
	}
	harness.Must(f.t, json.Unmarshal(params, &event))
	if method == "log.entryAdded" {
		f.messages = append(f.messages, event.Text)
	} else {
		f.requests = append(f.requests, event.Request.URL)
	}
}

// context is the first context of a kind: of a tab, or of a window.
func (f *firefox) context(kind fields) string {
	f.t.Helper()
	var tree struct {
		Contexts []struct{ Context string }
	}
	f.command("browsingContext.getTree", kind, &tree)
	return tree.Contexts[0].Context
}

// evaluateIn is the value of an expression in a context.
func (f *firefox) evaluateIn(context, expression string) json.RawMessage {
	f.t.Helper()
	var evaluated struct {
		Result           struct{ Value string }
		ExceptionDetails *struct{ Text string }
	}
	f.command("script.evaluate", fields{
		"target":       fields{"context": context},
		"expression":   fmt.Sprintf("JSON.stringify((%s))", expression),
		"awaitPromise": false,
	}, &evaluated)
	if evaluated.ExceptionDetails != nil {
		f.t.Fatalf("%s: %s", expression, evaluated.ExceptionDetails.Text)
	}
	return json.RawMessage(evaluated.Result.Value)
}

// override sets a property of the tab, as the developer tools do.
func (f *firefox) override(property string, value any) {
	f.t.Helper()
	f.evaluateIn(f.window, fmt.Sprintf("gBrowser.selectedBrowser.browsingContext.%s = %#v", property, value))
}

func (f *firefox) open(url string) {
	f.t.Helper()
	f.messages = nil
	f.requests = nil
	f.command("browsingContext.navigate", fields{"context": f.page, "url": url, "wait": "complete"}, nil)
}

func (f *firefox) evaluate(expression string) json.RawMessage {
	f.t.Helper()
	return f.evaluateIn(f.page, expression)
}

func (f *firefox) press(keys string) {
	f.t.Helper()
	named := strings.NewReplacer("\t", "\ue004", "\r", "\ue007", "\u001b", "\ue00c") // https://www.w3.org/TR/webdriver/#keyboard-actions
	var actions []fields
	for _, key := range named.Replace(keys) {
		actions = append(actions, fields{"type": "keyDown", "value": string(key)}, fields{"type": "keyUp", "value": string(key)})
	}
	keyboard := fields{"type": "key", "id": "keyboard", "actions": actions}
	f.command("input.performActions", fields{"context": f.page, "actions": []fields{keyboard}}, nil)
}

func (f *firefox) screens() []screen { return []screen{narrow, desktop} }

func (f *firefox) resize(s screen) {
	f.t.Helper()
	viewport := fields{"width": s.width, "height": s.height}
	f.command("browsingContext.setViewport", fields{"context": f.page, "viewport": viewport, "devicePixelRatio": 1}, nil)
}

func (f *firefox) emulate(m media) {
	f.t.Helper()
	f.override("prefersColorSchemeOverride", m.scheme)
	f.override("mediumOverride", m.kind)
}

func (f *firefox) disableScripts() {
	f.t.Helper()
	f.override("allowJavascript", false)
}

func (f *firefox) screenshot() []byte {
	f.t.Helper()
	var picture struct{ Data []byte } // in base64
	f.command("browsingContext.captureScreenshot", fields{"context": f.page}, &picture)
	return picture.Data
}

func (f *firefox) heard() (messages, requests []string) {
	return f.messages, f.requests
}

func (f *firefox) tree() []string { return nil }
