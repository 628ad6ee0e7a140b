//! Large values between related units on different agents.

use periapt_tests::Installation;

/// The bytes of a value that fills most of a bag.
const LARGE: usize = 200_000;

/// Waits until the other side's hook has logged a whole value that it read.
fn read(periapt: &Installation, character: char) -> anyhow::Result<()> {
    let whole = |log: &str| log.chars().filter(|one| *one == character).count() == LARGE;
    periapt.ok_until(&["debug-log", "--replay", "--no-tail", "--include", "taker/0"], whole).map(drop)
}

#[test]
fn a_value_of_200_kilobytes_arrives_at_a_unit_on_another_agent_by_both_doors() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let mut second = periapt.agent("second", [])?;
    assert_eq!(second.first_line()?, "ready second");
    let takes = "script=*: status active\ndb-relation-changed: tool relation-get big giver/0";
    periapt.deploy("probe", ["taker", "--to", "agent=second", "--config", takes])?;
    let typed = format!("*: status active\nsink-relation-joined: set big={}", "~".repeat(LARGE));
    std::fs::write(periapt.path().join("typed"), typed)?;
    periapt.deploy("probe", ["giver", "--to", "agent=first", "--config", "script=@typed"])?;
    periapt.ok(["integrate", "giver:sink", "taker:db"])?;
    periapt.wait_for(["model"])?;
    let shown = |character: &str| {
        let value = character.repeat(LARGE);
        move |shown: &serde_json::Value| {
            let relations = shown["taker/0"]["relation-info"].as_array().into_iter().flatten();
            let mut bags = relations.map(|relation| &relation["related-units"]["giver/0"]["data"]["big"]);
            bags.any(|big| *big == value.as_str())
        }
    };
    periapt.json_until(&["show-unit", "taker/0"], shown("~"))?;
    read(&periapt, '~')?;

    // The same through the hook tool, which charms of other frameworks use.
    let argv = format!("config-changed: tool relation-set -r sink:2 big={}", "^".repeat(LARGE));
    std::fs::write(periapt.path().join("argv"), argv)?;
    periapt.ok(["config", "giver", "script=@argv"])?;
    periapt.json_until(&["show-unit", "taker/0"], shown("^"))?;
    read(&periapt, '^')?;
    let counted =
        periapt.ok(["exec", "--unit", "taker/0", "--", "relation-get -r db:2 big giver/0 | wc -c"])?;
    assert_eq!(counted.trim().parse::<usize>()?, LARGE + 1, "{counted}");

    // A value that exceeds the bag fails at the call, with the limit.
    let script = "relation-set -r sink:2 more=$(relation-get -r sink:2 big giver/0)";
    let refused = periapt.run(["exec", "--unit", "giver/0", "--", script])?;
    assert!(
        refused.stdout.contains("at most 262144 are allowed")
            || refused.stderr.contains("at most 262144 are allowed"),
        "{refused:?}"
    );
    Ok(())
}
