package periapttest_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"periapt"
	"periapt/periapttest"
)

// do does something with the container web in a hook.
func do(t *testing.T, setUp func(*periapttest.Unit), what func(web periapt.Container) error) {
	t.Helper()
	unit := periapttest.New("app/0", periapt.Handlers{
		"start": func(unit *periapt.Unit, _ periapt.Event) error { return what(unit.Container("web")) },
	})
	setUp(unit)
	if err := unit.Run("start"); err != nil {
		t.Error(err)
	}
}

func started(unit *periapttest.Unit) { unit.Container("web") }

func isKind(err error, kind string) bool {
	var told *periapt.PebbleError
	return errors.As(err, &told) && told.Kind == kind
}

func TestAContainerThatHasNotStartedCannotBeReached(t *testing.T) {
	do(t, func(*periapttest.Unit) {}, func(web periapt.Container) error {
		if web.CanConnect() || periapt.Refused(web.Replan()) != periapt.NotReady {
			t.Error("it is reached")
		}
		return nil
	})
	do(t, started, func(web periapt.Container) error {
		if !web.CanConnect() {
			t.Error("it is not reached")
		}
		return nil
	})
}

func TestFilesAreWrittenReadListedAndRemoved(t *testing.T) {
	var all []byte
	for i := range 256 {
		all = append(all, byte(i))
	}
	do(t, func(unit *periapttest.Unit) { unit.Container("web").Write("/etc/os", "Debian") }, func(web periapt.Container) error {
		content, err := web.Pull("/etc/os")
		if err != nil || string(content) != "Debian" {
			t.Error(string(content), err)
		}
		access := periapt.FileAccess{Permissions: 0o600, User: "www"}
		err = errors.Join(web.Push("/srv/a b&c", all), web.PushAs("/srv/x/y", nil, access), web.MakeDir("/srv/empty"))
		if content, failed := web.Pull("/srv/a b&c"); failed != nil || !bytes.Equal(content, all) {
			t.Error(content, failed)
		}
		listed, failed := web.ListFiles("/srv")
		var names []string
		for _, file := range listed {
			names = append(names, file.Name)
		}
		if failed != nil || !slices.Equal(names, []string{"a b&c", "empty", "x"}) || listed[0].Size != 256 || !listed[1].IsDir() {
			t.Error(listed, failed)
		}
		isThere, failed := web.Exists("/srv/x")
		err = errors.Join(err, failed, web.RemovePath("/srv/x"))
		if remains, failed := web.Exists("/srv/x/y"); !isThere || remains || failed != nil {
			t.Error(isThere, remains, failed)
		}
		if _, err := web.Pull("/none"); !isKind(err, "not-found") {
			t.Error(err)
		}
		for _, path := range []string{"etc/x", "/a\"b", "/a\r\nb", "/a\\b"} {
			if !isKind(web.Push(path, nil), "invalid") {
				t.Errorf("%q is pushed", path)
			}
		}
		return err
	})
}

func TestServicesArePlannedAndToldOf(t *testing.T) {
	var web *periapttest.Container
	do(t, func(unit *periapttest.Unit) {
		web = unit.Container("web")
		web.Plan = "services: {}\n"
		web.SetService("web", "active")
		web.SetCheck("page", "down")
	}, func(web periapt.Container) error {
		err := errors.Join(web.AddLayer("charm", "services: {}"), web.Replan(), web.Restart("web", "job"),
			web.SendSignal("SIGHUP", "web"))
		plan, failed := web.Plan()
		service, isThere, failed2 := web.Service("web")
		checks, failed3 := web.Checks()
		if plan != "services: {}\n" || !isThere || !service.IsRunning() || checks[0].IsUp() || checks[0].Threshold != 3 {
			t.Error(plan, service, checks)
		}
		stopped, failed7 := web.StopChecks("page")
		again, failed8 := web.StopChecks("page")
		checks, failed9 := web.Checks()
		begun, failed10 := web.StartChecks("page")
		page := []string{"page"}
		if !slices.Equal(stopped, page) || len(again) > 0 || checks[0].Status != "inactive" || !slices.Equal(begun, page) {
			t.Error(stopped, again, checks, begun)
		}
		for message, names := range map[string][]string{"cannot find check \"none\"": {"page", "none"}, "no checks to start": nil} {
			var refused *periapt.PebbleError
			if _, err := web.StartChecks(names...); !errors.As(err, &refused) || refused.Message != message {
				t.Error(err)
			}
		}
		err = errors.Join(err, failed7, failed8, failed9, failed10)
		id, failed4 := web.Notify("example.com/done", map[string]string{"size": "5"})
		notice, failed5 := web.Notice(id)
		all, failed6 := web.Notices()
		if notice.Key != "example.com/done" || notice.Data["size"] != "5" || len(all) != 1 {
			t.Error(notice, all)
		}
		return errors.Join(err, failed, failed2, failed3, failed4, failed5, failed6)
	})
	asked := []string{"replan", "restart web job", "SIGHUP web", "stop-checks page", "stop-checks page", "start-checks page"}
	if !slices.Equal(web.Actions, asked) || web.Layer("charm") != "services: {}" {
		t.Error(web.Actions)
	}
}

func TestACommandHasInputOutputsAndAnExitCode(t *testing.T) {
	input := bytes.Repeat([]byte{7}, 100_000)
	do(t, func(unit *periapttest.Unit) {
		unit.Container("web").Runs = func(command []string, stdin []byte) periapt.ExecOutput {
			code := map[bool]int{true: 1}[command[0] == "false"]
			return periapt.ExecOutput{Code: code, Stdout: stdin, Stderr: []byte(strings.Join(command, " "))}
		}
	}, func(web periapt.Container) error {
		output, err := web.Exec(periapt.Exec{Command: []string{"cat", "-"}, Stdin: input, Timeout: 5 * time.Second})
		if output.Code != 0 || !bytes.Equal(output.Stdout, input) || string(output.Stderr) != "cat -" {
			t.Error(output.Code, len(output.Stdout), string(output.Stderr))
		}
		_, failed := web.Run("false")
		if !isKind(failed, "exit-code") || !strings.Contains(failed.Error(), "exited with code 1: false") {
			t.Error(failed)
		}
		// All streams are closed again.
		for range 20 {
			if _, failed := web.Run("true"); failed != nil {
				return failed
			}
		}
		return err
	})
}

func TestAnErrorOfPebbleHasItsKindAndOneMessage(t *testing.T) {
	do(t, func(unit *periapttest.Unit) {
		unit.Container("web").Answers = func(request periapttest.Request) (int, string) {
			switch {
			case request.Path == "/v1/layers":
				return 400, `{"type":"error","result":{"message":"cannot parse layer"}}`
			case strings.Contains(request.Path, "/wait"):
				return 200, `{"result":{"status":"Error","err":"exited quickly","tasks":[{"log":["x"]}]}}`
			}
			return 0, ""
		}
	}, func(web periapt.Container) error {
		err := web.AddLayer("x", "y")
		if !isKind(err, "api") || err.Error() != `container "web": cannot parse layer (status 400)` {
			t.Error(err)
		}
		if err := web.Replan(); !isKind(err, "change-failed") || err.Error() != "container \"web\": exited quickly\nx" {
			t.Error(err)
		}
		return nil
	})
}

func TestAPeerThatIsNoPebbleIsOneErrorWithinBounds(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for sent, expected := range map[string]string{
		"":                               "the response was cut off",
		"HTTP/1.1 200 OK\r\nX: y\r\n":    "the response was cut off",
		strings.Repeat("x", 100_000):     "the head of the response has more than 65536 bytes",
		strings.Repeat("x: y\n", 20_000): "the response is no HTTP/1.1",
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("x: y\r\n", 20_000):     "the head of the response has more than 65536 bytes",
		chunked + "ffffffff\r\n":                                       "the body of the response has more than 8388608 bytes",
		chunked + "ffffffffffffffffff\r\n":                             "a chunk of the response has no valid length",
		chunked + "-5\r\nhello\r\n":                                    "a chunk of the response has no valid length",
		chunked + "+5\r\nhello\r\n":                                    "a chunk of the response has no valid length",
		chunked + "1\r\nab\r\n":                                        "a chunk of the response has no valid length",
		chunked + strings.Repeat("0", 2_000):                           "a chunk of the response has no valid length",
		chunked + "5\r\nhe":                                            "the response was cut off",
		"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n":                "the response has no valid length",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n":       "more than 8388608 bytes",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n":           `the response is encoded as "gzip"`,
		"SSH-2.0\r\n\r\n":                                              "the response is no HTTP/1.1",
		"HTTP/1.1 200 OK\r\n\r\n[1]":                                   "its answer with status 200 is unreadable",
		"HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 9<<20):         "more than 8388608 bytes",
		chunked + strings.Repeat("1\r\nx\r\n", 100_000) + "0\r\n":      "is unreadable",
		"HTTP/1.1 200 OK\r\nContent-Type: multipart/form-data\r\n\r\n": "",
	} {
		do(t, func(unit *periapttest.Unit) { unit.Container("web").Sends = []byte(sent) }, func(web periapt.Container) error {
			_, planned := web.Plan()
			_, pulled := web.Pull("/x")
			_, run := web.Run("x")
			for _, err := range []error{planned, pulled, run} {
				if !isKind(err, "broken") || !strings.Contains(err.Error(), expected) {
					t.Errorf("%.60q: %v", sent, err)
				}
			}
			if web.CanConnect() {
				t.Errorf("%.60q is a Pebble", sent)
			}
			return nil
		})
	}
}

func TestAPageOfAWorkloadIsFetchedFromItsPort(t *testing.T) {
	unit := periapttest.New("app/0", periapt.Handlers{
		"start": func(unit *periapt.Unit, _ periapt.Event) error {
			page, err := unit.WorkloadPage(8080, "/a")
			if page.Status != 404 || string(page.Body) != "no /a" {
				t.Error(page)
			}
			_, refused := unit.WorkloadPage(8081, "/")
			if periapt.Refused(refused) != periapt.NotReady {
				t.Error(refused)
			}
			_, odd := unit.WorkloadPage(8080, "/ HTTP/1.1\r\nX: y")
			if odd == nil || !strings.Contains(odd.Error(), "is no path of a request") {
				t.Error(odd)
			}
			return err
		},
	})
	unit.Serve(8080, func(request periapttest.Request) (int, string) { return 404, "no " + request.Path })
	if err := unit.Run("start"); err != nil {
		t.Error(err)
	}
}
