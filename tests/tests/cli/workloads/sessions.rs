//! Dialogues of operators with commands in containers.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Stdio},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, signal};
use serde_json::{Value, json};

use super::{Scene, processes, until};
use crate::users::colleague;

/// Plays an operator at a terminal of 99 columns and 33 rows: runs a shell's script there, and prints all that it shows. Its
/// first argument is the steps: `expect` waits for a text after those before, `send` types, `size` changes the
/// terminal's size to some rows and columns, `until` types something again and again until a text comes.
const OPERATOR: &str = r#"
import fcntl, json, os, pty, select, struct, sys, termios, time
steps, script = json.loads(sys.argv[1]), sys.argv[2]
started, start = os.pipe()
child, terminal = pty.fork()
if child == 0:
    os.read(started, 1)
    os.environ["TERM"] = "xterm"
    os.execvp("sh", ["sh", "-c", script])
def resize(rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
resize(33, 99)
os.write(start, b"x")
shown, seen = "", 0
def read(seconds):
    global shown
    if not select.select([terminal], [], [], seconds)[0]:
        return True
    try:
        data = os.read(terminal, 65536)
    except OSError:
        data = b""
    shown += data.decode(errors="replace")
    return bool(data)
def comes(text, seconds):
    global seen
    until = time.monotonic() + seconds
    while shown.find(text, seen) < 0:
        left = until - time.monotonic()
        if left <= 0 or not read(left):
            return False
    seen = shown.find(text, seen) + len(text)
    return True
for kind, *words in steps:
    if kind == "expect":
        done = comes(words[0], 60)
    elif kind == "until":
        done = False
        for _ in range(100):
            os.write(terminal, words[0].encode())
            done = comes(words[1], 0.5)
            if done:
                break
    elif kind == "size":
        resize(*words)
        done = True
    else:
        os.write(terminal, words[0].encode())
        done = True
    if not done:
        sys.exit(f"not so: {kind} {words}: {shown!r}")
while read(60):
    pass
os.waitpid(child, 0)
print(json.dumps(shown))
"#;

/// The words of a dialogue with the container of the one unit.
pub(crate) const EXEC: [&str; 5] = ["exec", "-u", "probe/0", "--container", "web"];

/// Returns a text in quotes for a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Lets an operator play these steps at a terminal where a shell runs a script. Returns what the terminal has shown.
pub(crate) fn at_terminal(periapt: &Installation, steps: &Value, script: &str) -> anyhow::Result<String> {
    let mut operator = periapt.program("python3");
    operator.args(["-c", OPERATOR, &steps.to_string(), script]);
    let done = Installation::finished(operator)?;
    ensure!(done.code == Some(0), "{done:?}");
    Ok(serde_json::from_str(&done.stdout)?)
}

/// Begins a dialogue whose input and output are pipes.
pub(crate) fn begun(periapt: &Installation, words: &[&str]) -> anyhow::Result<Child> {
    let mut command = periapt.command(EXEC);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("starting periapt")
}

#[test]
fn a_shell_in_a_container_has_the_operators_terminal_which_is_restored() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let binary = periapt_tests::binary()?;
    let own_binary = std::fs::canonicalize(&binary)?;
    let binary = quoted(binary.to_str().context("a path")?);
    let script = format!(
        "stty -g; {binary} exec --container web -it probe/0 -- sh -c 'echo ready; exec sh'; echo \"code $?\"; stty -g"
    );
    let steps = json!([
        ["expect", "ready"],
        ["until", "stty size\n", "33 99"],
        ["size", 20, 50],
        ["until", "stty size\n", "20 50"],
        ["send", "tty; echo \"term=$TERM\"\n"],
        ["expect", "/dev/pts/"],
        ["expect", "term=xterm"],
        // Ctrl-C goes to the command alone.
        ["send", "echo be; echo gun; sleep 3617\n"],
        ["expect", "gun\r\n"],
        ["send", "\u{3}"],
        ["until", "echo alive-$((1+1))\n", "alive-2"],
        ["send", "exit 7\n"],
        ["expect", "code 7"],
    ]);
    let shown = at_terminal(periapt, &steps, &script)?;
    let states: Vec<&str> =
        shown.lines().map(str::trim).filter(|line| line.matches(':').count() > 30).collect();
    ensure!(
        matches!(states.as_slice(), [before, after] if before == after),
        "not restored: {states:?} {shown}"
    );
    until("nothing is left of it", || Ok(processes(&["sleep 3617"])?.is_empty()))?;

    // Its operator dies: the shell hears a hangup. Its terminal is restored after a signal, too.
    let script = format!(
        "stty -g; {binary} exec --container web -it probe/0 -- sh -c 'echo ready; read line; exec sleep $((3600+19))'; \
         echo \"code $?\"; stty -g"
    );
    let steps = json!([["expect", "ready"], ["send", "\n"], ["expect", "code 143"]]);
    let shown = std::thread::scope(|scope| {
        let operator = scope.spawn(|| at_terminal(periapt, &steps, &script));
        until("the command runs", || Ok(!processes(&["sleep 3619"])?.is_empty()))?;
        let own = periapt.path().display().to_string();
        let client = || -> anyhow::Result<Option<u32>> {
            let data = format!("PERIAPT_DATA={own}");
            let all = processes(&["--container", "-it", "3600+19"])?;
            Ok(all.into_iter().find(|pid| {
                let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                String::from_utf8_lossy(&environment).contains(&data) && program == own_binary
            }))
        };
        signal(client()?.context("no client")?, "TERM")?;
        operator.join().map_err(|_| anyhow::anyhow!("the operator has failed"))?
    })?;
    let states: Vec<&str> =
        shown.lines().map(str::trim).filter(|line| line.matches(':').count() > 30).collect();
    ensure!(
        matches!(states.as_slice(), [before, after] if before == after),
        "not restored: {states:?} {shown}"
    );
    until("the command has ended", || Ok(processes(&["sleep 3619"])?.is_empty()))
}

#[test]
fn a_command_in_a_container_gets_input_without_a_bound_and_passes_its_exit_code_on() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let given = periapt.path().join("given");
    let bytes = "0123456789abcdef".repeat(5 << 16);
    std::fs::write(&given, &bytes)?;
    let fed = |words: &[&str]| {
        let mut command = periapt.command(EXEC);
        command.args(words).stdin(File::open(&given)?);
        Installation::finished(command)
    };
    let counted = fed(&["-i", "--", "wc", "-c"])?;
    assert_eq!((counted.code, counted.stdout.trim()), (Some(0), "5242880"), "{counted:?}");
    let copied = fed(&["--interactive", "--", "cat"])?;
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    assert!(copied.stdout == bytes, "{} bytes have come back", copied.stdout.len());
    let unread = fed(&["-i", "--", "sh", "-c", "echo out; echo err >&2; exit 3"])?;
    assert_eq!((unread.code, &*unread.stdout, &*unread.stderr), (Some(3), "out\n", "err\n"));
    // No task tells of it.
    let tasks = periapt.ok(["operations", "--actions", "juju-exec", "--format", "json"])?;
    assert_eq!(tasks, "");

    // Each line is answered before the next one is sent.
    let mut dialogue =
        begun(periapt, &["-i", "--", "sh", "-c", "while read line; do echo got $line; done; exit 4"])?;
    let mut input = dialogue.stdin.take().context("an input")?;
    let mut output = BufReader::new(dialogue.stdout.take().context("an output")?);
    for word in ["one", "two"] {
        writeln!(input, "{word}")?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        assert_eq!(line, format!("got {word}\n"));
    }
    drop(input);
    assert_eq!(dialogue.wait()?.code(), Some(4));

    for (words, part) in [
        (&["-i", "--", "no-such-program"][..], "cannot find executable \"no-such-program\""),
        (&["-t", "--", "sh"][..], "standard input is not a terminal"),
        (&["-t", "--background", "--", "sh"][..], "one unit"),
    ] {
        let refused = fed(words)?;
        assert!(refused.code.is_some_and(|code| code > 0) && refused.stderr.contains(part), "{refused:?}");
    }
    for words in [["-u", "probe/7", "--container", "web"], ["-u", "probe/0", "--container", "db"]] {
        let refused = periapt.refused([&["exec", "-i"][..], &words, &["--", "true"]].concat())?;
        assert!(refused.contains("probe/7") || refused.contains("declares no container \"db\""), "{refused}");
    }
    Ok(())
}

#[test]
fn a_command_in_a_container_ends_with_whatever_stands_between_it_and_its_operator() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let sleeps = ["-i", "--", "sh", "-c", "exec sleep $((3600+13))"];
    let runs = || -> anyhow::Result<bool> { Ok(!processes(&["sleep 3613"])?.is_empty()) };

    let mut client = begun(periapt, &sleeps)?;
    until("the command runs", runs)?;
    client.kill()?;
    client.wait()?;
    until("it has ended with its client", || Ok(!runs()?))?;

    let mut client = begun(periapt, &sleeps)?;
    until("the command runs again", runs)?;
    let pod = super::children(scene.agent.id(), &["agent pod --keeper"])?;
    signal(*pod.first().context("no pod")?, "KILL")?;
    let mut told = String::new();
    client.stderr.take().context("errors")?.read_to_string(&mut told)?;
    assert_eq!(client.wait()?.code(), Some(1), "{told}");
    assert!(told.starts_with("ERROR the session has broken off: "), "{told}");
    until("it has ended with its pod", || Ok(!runs()?))?;

    scene.boot_id()?;
    let mut client = begun(periapt, &sleeps)?;
    until("the command runs once more", runs)?;
    signal(scene.agent.id(), "KILL")?;
    let mut told = String::new();
    client.stderr.take().context("errors")?.read_to_string(&mut told)?;
    assert_eq!(client.wait()?.code(), Some(1), "{told}");
    assert!(told.contains("agent worker is not connected any more"), "{told}");
    until("it has ended with the keeper, though its pod goes on", || Ok(!runs()?))
}

#[test]
fn a_dialogue_needs_write_access_and_its_beginning_and_end_are_in_the_audit_log() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let jane = colleague(periapt, "jane")?;
    let file = periapt.path().join("touched");
    let path = file.to_str().context("a path")?;
    let touch =
        ["exec", "-m", "admin/test", "-i", "-u", "probe/0", "--container", "web", "--", "touch", path];
    periapt.ok(["grant", "jane", "read", "test"])?;
    let refused = jane.refused(touch)?;
    assert!(refused.contains("permission denied"), "{refused}");
    assert!(!file.exists(), "it has run");
    periapt.ok(["grant", "jane", "write", "test"])?;
    jane.ok(touch)?;
    assert!(file.exists(), "it has not run");

    let entries = |log: &Value| -> Vec<(String, String)> {
        let requests = log.as_array().into_iter().flatten().map(|entry| &entry["request"]);
        let of_jane = requests.filter(|request| request["user"] == "jane" && request["outcome"] == "done");
        let told = of_jane.filter_map(|request| {
            let (act, subject) = (request["act"].as_str()?, request["subject"].as_str()?);
            act.ends_with("-exec-session").then(|| (act.to_owned(), subject.to_owned()))
        });
        told.map(|(act, subject)| (act, subject.split_once(", ").unwrap_or_default().1.to_owned())).collect()
    };
    let log = periapt.json_until(&["audit-log"], |log| entries(log).len() >= 2)?;
    let begun = format!("unit probe/0, container web, command 'touch' '{path}'");
    let ended = format!("{begun}, exit code 0");
    let expected = [("begin-exec-session", begun), ("end-exec-session", ended)];
    assert_eq!(entries(&log), expected.map(|(act, subject)| (act.to_owned(), subject)));
    Ok(())
}
