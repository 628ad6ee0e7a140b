//! Streams of statuses and logs.

use periapt_tests::Installation;

#[test]
fn a_wait_survives_the_controllers_end_and_return() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let wait = ["wait-for", "application", "mysql", "--timeout", "90s"];
    let mut waiting = periapt.command(wait).stderr(std::process::Stdio::null()).spawn()?;
    periapt.ok(["controller", "stop"])?;
    periapt.ok(["controller", "start"])?;
    periapt.deploy("mysql", [])?;
    assert!(waiting.wait()?.success());
    Ok(())
}

#[test]
fn a_wait_that_is_in_vain_says_what_was_missing() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("mysql", [])?;
    // A busy machine takes a while for the first status.
    let error = periapt.refused(["wait-for", "model", "--timeout", "3s"])?;
    assert!(error.contains("timed out after 3 s: unit mysql/0 is "), "{error}");
    Ok(())
}

#[test]
fn the_log_is_filtered_by_entity_and_level() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", [])?;
    periapt.deploy("wordpress", [])?;
    periapt.ok(["integrate", "wordpress", "mysql"])?;
    periapt.wait_for(["model"])?;
    let all = periapt.ok(["debug-log", "--replay", "--no-tail"])?;
    assert!(all.contains("unit-mysql-0: "), "{all}");
    assert!(all.contains("rendered wp-config.php"), "{all}");
    let of_one = periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "mysql"])?;
    assert!(!of_one.is_empty() && of_one.lines().all(|line| line.starts_with("unit-mysql-0: ")), "{of_one}");
    let without = periapt.ok(["debug-log", "--replay", "--no-tail", "--exclude", "mysql/0"])?;
    assert!(!without.is_empty() && !without.contains("unit-mysql-0"), "{without}");
    // The limit counts matching lines only: the newest lines are not all of one unit.
    for (unit, other) in [("mysql", "wordpress"), ("wordpress", "mysql")] {
        let module = format!("unit.{unit}/0");
        for filter in [["--include-module", &module], ["--exclude", other]] {
            let few = periapt.ok(["debug-log", "--limit", "1", filter[0], filter[1]])?;
            let start = format!("unit-{unit}-0: ");
            assert_eq!(few.lines().filter(|line| line.starts_with(&start)).count(), 1, "{few}");
        }
    }
    let errors = periapt.ok(["debug-log", "--replay", "--no-tail", "--level", "ERROR"])?;
    assert_eq!(errors, "", "no hook has failed");
    Ok(())
}

#[test]
fn what_ran_is_in_the_journal_and_can_be_summed_up() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", ["db"])?;
    periapt.wait_for(["model"])?;
    let rows = periapt.json(["hooks", "--summary"])?;
    let counts: Vec<_> = rows
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| (row["hook"].as_str().unwrap_or_default(), row["count"].as_u64().unwrap_or_default()))
        .collect();
    for hook in ["install", "leader-elected", "config-changed", "start", "replicas-relation-created"] {
        assert!(counts.contains(&(hook, 1)), "{hook} in {counts:?}");
    }
    Ok(())
}
