//! Goals in the query language of Juju's `wait-for`.

use periapt_tests::Installation;

#[test]
fn what_a_query_wants_is_waited_for_and_told() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("probe", ["-n", "2", "--config", "script=*: status active fine"])?;
    let query = r#"status=="active" && len(units)==2 && forEach(units, u => u.workload-message=="fine")"#;
    let done = periapt.run(["wait-for", "application", "probe", "--query", query, "--timeout", "90s"])?;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(
        done.stdout,
        "properties:\n  status: active\nunits:\n  probe/0:\n    workload-message: fine\n  probe/1:\n    \
         workload-message: fine\n"
    );
    assert!(done.stderr.contains("application \"probe\" is running"), "{done:?}");
    for (what, query) in [
        (vec!["unit", "probe/1"], r#"life=="alive" && startsWith(machine-id, "1")"#),
        (vec!["machine", "0"], r#"status=="started""#),
        (vec!["model"], r#"status=="available""#),
        (vec!["model", "test"], "len(machines)==2"),
    ] {
        let arguments = [vec!["wait-for"], what, vec!["--query", query, "--summary=false"]].concat();
        assert_eq!(periapt.ok(&arguments)?, "", "{arguments:?}");
    }
    // Without a query there is nothing to summarize.
    assert_eq!(periapt.ok(["wait-for", "unit", "probe/0", "--summary=false"])?, "");
    // A busy machine takes a while for the first status.
    let late = ["wait-for", "unit", "probe/0", "--query", r#"workload-status=="blocked""#, "--timeout", "3s"];
    let said = periapt.refused(late)?;
    assert!(
        said.contains(
            r#"timed out after 3 s: unit "probe/0" is {"properties":{"workload-status":"active"}}"#
        ),
        "{said}"
    );
    let said = periapt.refused(["wait-for", "application", "probe", "--query", "stauts==\"active\""])?;
    let shown = "an application has no \"stauts\"; it has name, life, ";
    assert!(said.contains(shown) && said.contains("\n  stauts==\"active\"\n  ^"), "{said}");
    Ok(())
}

#[test]
fn what_goes_while_it_is_waited_for_is_told_at_once() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("probe", [])?;
    periapt.wait_for(["application", "probe"])?;
    let mut waiting = periapt.command(["wait-for", "application", "probe", "--query", "status==\"error\""]);
    let waiting = waiting.stderr(std::process::Stdio::piped()).arg("--debug").spawn()?;
    let mut waiting = LoggedProcess::new(waiting);
    waiting.until("not yet")?;
    periapt.ok(["remove-application", "probe", "--no-prompt"])?;
    waiting.until("application \"probe\" removed")
}

/// A process whose standard error the test reads; dropping it kills the process.
struct LoggedProcess {
    child: std::process::Child,
    lines: Box<dyn Iterator<Item = std::io::Result<String>>>,
}

impl LoggedProcess {
    fn new(mut child: std::process::Child) -> Self {
        let errors = child.stderr.take().map(std::io::BufReader::new);
        let lines = errors.into_iter().flat_map(std::io::BufRead::lines);
        Self { child, lines: Box::new(lines) }
    }

    /// Reads until a line contains a text.
    fn until(&mut self, text: &str) -> anyhow::Result<()> {
        let mut read = Vec::new();
        for line in self.lines.by_ref() {
            let line = line?;
            if line.contains(text) {
                return Ok(());
            }
            read.push(line);
        }
        anyhow::bail!("{text:?} is not said in\n{}", read.join("\n"))
    }
}

impl Drop for LoggedProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
