//! The unit's log.

use periapt_hook::OutputStream;
use periapt_host_api::logs::LogLevel;

use crate::world::{World, changed, log_line, now};

#[test]
fn the_handlers_streams_are_logged_under_the_hooks_name() {
    let mut hook = World::new().event(changed("b/0")).start();
    hook.context.output_line(now(), OutputStream::Stdout, "out\r\n");
    hook.context.output_line(now(), OutputStream::Stderr, "err");
    assert_eq!(
        hook.log_lines(),
        ["DEBUG unit.a/0.db-relation-changed out", "WARNING unit.a/0.db-relation-changed err"]
    );
}

#[test]
fn a_long_text_is_split_between_characters() {
    let mut hook = World::new().limits(|limits| limits.log_line_bytes = 5).start();
    hook.context.output_line(now(), OutputStream::Stdout, "ééééé");
    let texts: Vec<_> =
        hook.log_lines().iter().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
    assert_eq!(texts, ["éé", "éé", "é"]);
    let mut hook = World::new().limits(|limits| limits.log_line_bytes = 1).start();
    hook.context.output_line(now(), OutputStream::Stdout, "éé");
    assert_eq!(hook.log_lines().len(), 1, "a bound that no character fits into ends all the same");
}

#[test]
fn a_flood_ends_in_one_line_that_says_how_much_was_dropped() {
    let mut hook = World::new().limits(|limits| limits.log_bytes = 1_000).start();
    for _ in 0..100 {
        hook.context.log(now(), LogLevel::Info, &"x".repeat(100));
    }
    hook.context.log(now(), LogLevel::Info, "");
    assert_eq!(hook.log_lines().len(), 6);
    let gathered = hook.finish();
    let last: Vec<_> = gathered.early.iter().filter_map(|(_, effect)| log_line(effect)).collect();
    let expected = "WARNING unit.a/0.juju-log \
        the hook's log is full at 1000 bytes: 95 more lines of 9400 bytes were dropped";
    assert_eq!(last, [expected]);
    assert_eq!(gathered.log_bytes, 10_000);
}

#[test]
fn empty_lines_are_not_free() {
    let mut hook = World::new().limits(|limits| limits.log_bytes = 640).start();
    for _ in 0..1_000 {
        hook.context.log(now(), LogLevel::Info, "");
    }
    assert_eq!(hook.log_lines().len(), 10);
}
