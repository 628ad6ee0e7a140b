//! Hooks whose runner is killed after they changed their workload.

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use periapt_tests::signal;

use super::{Scene, children, until};

const CUT_SHORT: &str =
    "hook failed: \"config-changed\": it was cut short after it may have changed its workload";

impl Scene {
    /// Returns the file in which the workload counts what hooks asked of it.
    fn marks(&self) -> PathBuf {
        self.periapt.path().join("marks")
    }

    /// Lets config-changed leave one more mark through its workload, and wait until the file `go` exists.
    fn leave_mark(&self, comment: &str) -> anyhow::Result<()> {
        let (marks, go) = (self.marks(), self.periapt.path().join("go"));
        let script = format!(
            "# {comment}\nconfig-changed: shell web 290000 echo mark >> {}; while test ! -e {}; do sleep 0.1; done",
            marks.display(),
            go.display()
        );
        self.periapt.ok(["config", "probe", &format!("script={script}")]).map(drop)
    }

    fn until_marks(&self, count: usize) -> anyhow::Result<()> {
        until(&format!("there are {count} marks"), || Ok(self.count()? >= count))?;
        assert_eq!(self.count()?, count);
        Ok(())
    }

    fn count(&self) -> anyhow::Result<usize> {
        let marks = self.marks();
        match marks.exists() {
            true => Ok(fs::read_to_string(marks)?.lines().count()),
            false => Ok(0),
        }
    }

    fn kill_runner(&self) -> anyhow::Result<()> {
        let runners = children(self.agent.id(), &["agent runner"])?;
        signal(*runners.first().context("no runner")?, "KILL")
    }

    fn until_cut_short(&self) -> anyhow::Result<()> {
        self.periapt.ok_until(&["status"], |status| status.contains(CUT_SHORT)).map(drop)
    }
}

#[test]
fn an_application_says_whether_hooks_that_were_cut_short_beside_their_workload_run_again()
-> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    periapt.ok_until(&["hooks", "probe/0"], |hooks| hooks.contains("web-pebble-ready"))?;
    assert_eq!(periapt.ok(["config", "probe", "workload-crash"])?, "retry\n");
    let error = periapt.refused(["config", "probe", "workload-crash=ignore"])?;
    assert!(error.contains("workload-crash expected retry or error, got \"ignore\""), "{error}");

    periapt.ok(["config", "probe", "workload-crash=error"])?;
    assert_eq!(periapt.ok(["config", "probe", "workload-crash"])?, "error\n");
    scene.leave_mark("first")?;
    scene.until_marks(1)?;
    scene.kill_runner()?;
    scene.until_cut_short()?;
    assert_eq!(scene.count()?, 1, "the hook waits for an operator");

    // The operator has it run again, and the runner dies once more.
    periapt.ok(["resolved", "probe/0"])?;
    scene.until_marks(2)?;
    periapt.ok_until(&["status"], |status| !status.contains(CUT_SHORT))?;
    scene.kill_runner()?;
    scene.until_cut_short()?;
    periapt.ok(["resolved", "probe/0", "--no-retry"])?;
    periapt.ok_until(&["status"], |status| !status.contains("hook failed"))?;
    assert_eq!(scene.count()?, 2, "the hook was passed over");

    // By default such a hook runs again by itself.
    periapt.ok(["config", "probe", "--reset", "workload-crash"])?;
    scene.leave_mark("second")?;
    scene.until_marks(3)?;
    scene.kill_runner()?;
    scene.until_marks(4)?;
    fs::write(periapt.path().join("go"), "")?;
    let again = |hooks: &str| {
        let last = hooks.lines().rev().find(|line| line.contains("config-changed"));
        last.is_some_and(|line| line.split_whitespace().any(|word| word == "ok"))
    };
    periapt.ok_until(&["hooks", "probe/0"], again)?;
    assert!(!periapt.ok(["status"])?.contains("hook failed"));
    Ok(())
}
