//! The table of hook tools, called by a guest: `charms/probe` runs each case's tool, with files of its own.

use std::{fs::File, io::Write as _, sync::Arc};

use parking_lot::Mutex;
use periapt_hook::{CallError, CallTime, LeaseState};
use periapt_host_api::{
    Timestamp,
    commit::EarlyEffect,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
};
use periapt_sandbox::{BoxFuture, Budgets, HandlerOutcome, HookServices, RunInputs, Seed};

use self::table::Case;
use crate::world::{SANDBOX, loaded};

#[allow(dead_code, reason = "a guest has files of its own")]
#[path = "../../../hook/tests/it/scene.rs"]
mod scene;
#[allow(dead_code, reason = "what is typed is compared where the table is at home")]
#[path = "../../../hook/tests/it/table.rs"]
mod table;
#[allow(dead_code, reason = "other tests of the same world use the rest")]
#[path = "../../../hook/tests/it/world.rs"]
mod world;

#[tokio::test]
async fn every_tool_answers_a_guest_as_its_table_says() {
    let mut wrong = Vec::new();
    for tool in table::tools() {
        let cases: Vec<_> = tool.cases.iter().filter(|case| can_be_scripted(case)).collect();
        assert!(!cases.is_empty(), "no guest asks {}", tool.name);
        for case in cases {
            let log = ask(case).await;
            let missing =
                expected(case).into_iter().filter(|line| !log.iter().any(|said| said.ends_with(line)));
            wrong.extend(missing.map(|line| format!("{}: {}\n  {line:?}\n  {log:?}", tool.name, case.case)));
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns true for a case that a script can express: it has single lines and no standard input.
fn can_be_scripted(case: &Case) -> bool {
    case.stdin.is_none() && case.files.values().all(|content| !content.contains('\n'))
}

/// Returns the probe's script for a case.
fn script(case: &Case) -> String {
    let files = case.files.iter().map(|(path, content)| format!("write {path}={content}"));
    let tools = case.before.iter().chain([&case.run]).map(|line| format!("tool {line}"));
    let written = case.wrote.keys().map(|path| format!("read {path}"));
    files.chain(tools).chain(written).map(|line| format!("*: {line}\n")).collect()
}

/// Returns the expected log of the probe.
fn expected(case: &Case) -> Vec<String> {
    let name = case.run.split(' ').next().unwrap();
    let (stdout, stderr) = (&case.stdout, case.stderr());
    let told = format!("tool {name}: {} {} {}", case.code, stdout.trim_end(), stderr.trim_end());
    let written = case.wrote.iter().map(|(path, content)| format!("read {path}: {}", content.trim_end()));
    [told].into_iter().chain(written).collect()
}

/// Returns the lines that the probe logs.
async fn ask(case: &Case) -> Vec<String> {
    let charm = tempfile::tempdir().unwrap();
    std::fs::write(charm.path().join("script"), script(case)).unwrap();
    let services = Arc::new(Services::default());
    let inputs = RunInputs {
        context: scene::scene(case).start().context,
        seed: Seed([7; 32]),
        budgets: Budgets::default(),
        storage: Vec::new(),
        services: Arc::clone(&services) as Arc<dyn HookServices>,
    };
    let prepared = SANDBOX.prepare(&loaded("probe"), Some(charm.path())).unwrap();
    let report = SANDBOX.run_hook(&prepared, inputs).await.unwrap();
    assert_eq!(report.outcome, HandlerOutcome::Handled, "{}", case.case);
    let mut early = std::mem::take(&mut *services.early.lock());
    early.extend(report.gathered.early);
    early.iter().filter_map(|(_, effect)| world::log_line(effect)).collect()
}

/// The services of the hook: no lease, and the controller's secrets.
#[derive(Default)]
struct Services {
    early: Mutex<Vec<(Timestamp, EarlyEffect)>>,
}

impl HookServices for Services {
    fn now(&self) -> CallTime {
        world::now()
    }

    fn renew_lease(&self) -> BoxFuture<'_, LeaseState> {
        Box::pin(std::future::ready(LeaseState::default()))
    }

    fn fetch_secret(&self, key: SecretKey) -> BoxFuture<'_, Result<SecretData, CallError>> {
        Box::pin(std::future::ready(scene::content(key)))
    }

    fn fetch_resource(&self, key: ResourceKey) -> BoxFuture<'_, Result<File, CallError>> {
        Box::pin(std::future::ready(scene::resource(&key).map(|content| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(content.as_bytes()).unwrap();
            file
        })))
    }

    fn early(&self, items: Vec<(Timestamp, EarlyEffect)>) {
        self.early.lock().extend(items);
    }
}
