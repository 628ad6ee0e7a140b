//! The client of Pebble, beside a Pebble in memory, and beside one that answers nonsense.

use std::time::Duration;

use periapt_sdk::testing::{Container, Harness};
use periapt_sdk::{
    Charm, Error, Event, FileAccess, HttpResponse, Pebble, PebbleExec, PebbleOutput, Result, Unit,
};

thread_local! {
    static STEP: std::cell::Cell<fn(&Pebble, &Unit) -> Result> = const { std::cell::Cell::new(|_, _| Ok(())) };
}

/// Does one step of a test with its container.
#[derive(Default)]
struct Steps;

impl Charm for Steps {
    fn otherwise(&mut self, unit: &Unit, _: &Event) -> Result {
        STEP.get()(&unit.pebble("web"), unit)
    }
}

fn started() -> (Harness<Steps>, Container) {
    let mut unit = Harness::new("app/0");
    let web = unit.container("web");
    (unit, web)
}

/// Runs a step in a hook, and returns the message of its failure.
fn failure(unit: &mut Harness<Steps>, step: fn(&Pebble, &Unit) -> Result) -> Option<String> {
    STEP.set(step);
    unit.run(Event::Start).err().map(|failure| failure.message)
}

fn ok(unit: &mut Harness<Steps>, step: fn(&Pebble, &Unit) -> Result) {
    assert_eq!(failure(unit, step), None);
}

fn holds(it: bool, what: &str) -> Result {
    if it { Ok(()) } else { Err(Error::new(format!("not so: {what}"))) }
}

#[test]
fn a_container_that_has_not_started_cannot_be_reached() {
    let mut unit = Harness::<Steps>::new("app/0");
    ok(&mut unit, |web, _| holds(!web.can_connect(), "it is not there"));
    let error = failure(&mut unit, |web, _| web.replan()).unwrap();
    assert!(error.starts_with("container \"web\": nobody listens"), "{error}");
    unit.container("web");
    ok(&mut unit, |web, _| holds(web.can_connect(), "it is there"));
}

#[test]
fn files_are_written_read_listed_and_removed() {
    let (mut unit, web) = started();
    web.write("/etc/os", "Debian");
    ok(&mut unit, |web, _| {
        holds(web.pull("/etc/os")? == b"Debian", "the image's file")?;
        let all: Vec<u8> = (0..=255).collect();
        web.push("/srv/a b&c", &all)?;
        holds(web.pull("/srv/a b&c")? == all, "the pushed file")?;
        let access = FileAccess { permissions: Some(0o600), user: Some("www"), group: None };
        web.push_as("/srv/x/y", "", access)?;
        web.make_dir("/srv/empty")?;
        let listed: Vec<_> =
            web.list_files("/srv")?.into_iter().map(|it| (it.name, it.kind, it.size)).collect();
        let entry = |name: &str, kind: &str, size| (name.to_owned(), kind.to_owned(), size);
        let expected =
            [entry("a b&c", "file", 256), entry("empty", "directory", 0), entry("x", "directory", 0)];
        holds(listed == expected, &format!("{listed:?}"))?;
        holds(web.exists("/srv/x")? && !web.exists("/srv/z")?, "what exists")?;
        web.remove_path("/srv/x")?;
        holds(!web.exists("/srv/x/y")?, "it is removed")?;
        let error = web.pull("/none").unwrap_err();
        let kind = error.pebble().map(|error| error.kind.clone());
        holds(kind.as_deref() == Some("not-found"), &error.to_string())
    });
}

#[test]
fn services_are_planned_and_told_of() {
    let (mut unit, web) = started();
    web.services(&[("web", "active"), ("job", "backoff")]);
    web.checks(&[("page", "down")]);
    web.plan("services: {}\n");
    ok(&mut unit, |web, _| {
        web.add_layer("charm", "services: {}")?;
        web.replan()?;
        web.restart(&["web", "job"])?;
        web.send_signal("SIGHUP", &["web"])?;
        holds(web.plan()? == "services: {}\n", "the plan")?;
        holds(web.service("web")?.is_some_and(|it| it.is_running()), "it runs")?;
        holds(web.service("job")?.is_some_and(|it| !it.is_running()), "it does not run")?;
        holds(web.service("none")?.is_none(), "there is no such service")?;
        holds(web.checks()?.iter().all(|check| !check.is_up() && check.threshold == 3), "the check is down")?;
        holds(web.stop_checks(&["page"])? == ["page"], "the check stops")?;
        holds(web.stop_checks(&["page"])?.is_empty(), "it rests already")?;
        holds(web.checks()?.iter().all(|check| check.status == "inactive"), "the check does not run")?;
        holds(web.start_checks(&["page"])? == ["page"], "the check runs again")?;
        let unknown = web.start_checks(&["page", "none"]).unwrap_err();
        let nothing = web.start_checks(&[]).unwrap_err();
        for (error, message) in [(unknown, "cannot find check \"none\""), (nothing, "no checks to start")] {
            holds(error.pebble().is_some_and(|error| error.message == message), &error.to_string())?;
        }
        let id = web.notify("example.com/done", &[("size", "5")])?;
        let notice = web.notice(&id)?;
        holds(notice.key == "example.com/done" && notice.data["size"] == "5", "the notice")?;
        holds(web.notices()? == [notice], "all notices")
    });
    assert_eq!(web.layer("charm").as_deref(), Some("services: {}"));
    let services = ["replan", "restart web job", "SIGHUP web"];
    let checks = ["stop-checks page", "stop-checks page", "start-checks page"];
    assert_eq!(web.actions(), [services, checks].concat());
    assert_eq!(web.notices(), ["example.com/done"]);
}

#[test]
fn a_command_has_input_outputs_and_an_exit_code() {
    let (mut unit, web) = started();
    web.runs(|command, stdin| PebbleOutput {
        code: if command[0] == "false" { 1 } else { 0 },
        stdout: stdin.to_vec(),
        stderr: command.join(" ").into_bytes(),
    });
    ok(&mut unit, |web, _| {
        let input = vec![7; 100_000];
        let cat =
            PebbleExec::new(["cat", "-"]).stdin(input.clone()).timeout(Duration::from_secs(5)).env("A", "b");
        let output = web.exec(&cat)?;
        holds(output.stdout == input && output.stderr == b"cat -" && output.code == 0, "outputs")?;
        let error = web.exec(&PebbleExec::new(["false"]))?.success().unwrap_err().to_string();
        holds(error == "the command exited with code 1: false", &error)
    });
}

#[test]
fn an_error_of_pebble_has_its_kind_and_one_message() {
    let (mut unit, web) = started();
    web.answers(|request| {
        let body = match request.path.as_str() {
            "/v1/layers" => r#"{"type":"error","result":{"message":"cannot parse layer"}}"#,
            path if path.contains("/wait") => {
                r#"{"result":{"status":"Error","err":"exited quickly","tasks":[]}}"#
            }
            _ => return None,
        };
        let status = if request.path == "/v1/layers" { 400 } else { 200 };
        Some(HttpResponse { status, body: body.into() })
    });
    let error = failure(&mut unit, |web, _| web.add_layer("x", "y")).unwrap();
    assert_eq!(error, "container \"web\": cannot parse layer (status 400)");
    ok(&mut unit, |web, _| {
        let kind = |error: &Error| error.pebble().map(|error| error.kind.clone());
        holds(kind(&web.add_layer("x", "y").unwrap_err()).as_deref() == Some("api"), "the layer's kind")?;
        holds(kind(&web.replan().unwrap_err()).as_deref() == Some("change-failed"), "the change's kind")
    });
}

#[test]
fn a_peer_that_is_no_pebble_is_one_error_within_bounds() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (mut unit, web) = started();
    for (sent, told) in [
        (String::new(), "the response was cut off"),
        ("HTTP/1.1 200 OK\r\nX: y\r\n".to_owned(), "the response was cut off"),
        ("x".repeat(100_000), "the head of the response has more than 65536 bytes"),
        (format!("{chunked}ffffffff\r\n"), "the body of the response has more than 8388608 bytes"),
        (format!("{chunked}-5\r\nhello\r\n"), "a chunk of the response has no valid length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n".to_owned(), "the response has no valid length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".to_owned(), "more than 8388608 bytes"),
        ("HTTP/1.1 200 OK\r\n\r\n[1".to_owned(), "its answer with status 200 is unreadable"),
        (format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(9 << 20)), "more than 8388608 bytes"),
    ] {
        web.sends(sent);
        for step in [
            (|web, _| web.plan().map(drop)) as fn(&Pebble, &Unit) -> Result,
            |web, _| web.pull("/x").map(drop),
            |web, _| web.exec(&PebbleExec::new(["x"])).map(drop),
        ] {
            let error = failure(&mut unit, step).unwrap();
            assert!(
                error.starts_with("container \"web\": ") && error.contains(told),
                "{error}, expected {told}"
            );
        }
        ok(&mut unit, |web, _| holds(!web.can_connect(), "it is no Pebble"));
    }
}

#[test]
fn a_page_of_a_workload_is_fetched_from_its_port() {
    let mut unit = Harness::<Steps>::new("app/0");
    unit.serve(8080, |request| {
        Some(HttpResponse { status: 200, body: format!("page {}", request.path).into() })
    });
    ok(&mut unit, |_, unit| holds(unit.workload_page(8080, "/a")?.text() == "page /a", "the page"));
}
