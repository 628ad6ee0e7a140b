//! The compile helper, which an agent starts for each component, and its limits in the kernel: a component is
//! hostile, and so is the compiler after reading it.

use std::{
    fs,
    io::Write as _,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_archive::{Archive, COMPONENT};
use periapt_tests::{Installation, binary};
use serde_json::{Value, json};

const HELLO: &[u8] = include_bytes!("../../../runtime/sandbox/tests/fixtures/hello-0.1.0.charm");

/// The timeout of each wait.
const UNTIL: Duration = Duration::from_secs(90);

fn component() -> anyhow::Result<Vec<u8>> {
    Ok(Archive::read(HELLO)?.file(COMPONENT).context("a component")?.to_vec())
}

/// Returns an order with limits that suffice for any component of this repository.
fn order() -> Value {
    json!({
        "work": "component",
        "limits": {
            "memory": 4_u64 << 30,
            "cpu-seconds": 300,
            "deadline": {"secs": 300, "nanos": 0},
            "input": 16 << 20,
            "output": 64 << 20,
        },
        "starter": std::process::id(),
    })
}

fn started(order: &Value) -> anyhow::Result<Child> {
    let mut helper = Command::new(binary()?);
    helper.args(["agent", "compile-helper", &order.to_string()]).env_clear();
    helper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    helper.spawn().context("starting a helper")
}

/// Runs the helper on a component.
fn compiled(order: &Value, component: &[u8]) -> anyhow::Result<Output> {
    let mut helper = started(order)?;
    let mut input = helper.stdin.take().context("its input")?;
    // The helper may end before it has read everything.
    let _ = input.write_all(component);
    drop(input);
    Ok(helper.wait_with_output()?)
}

/// Returns the order with one changed value, at a JSON pointer such as `/limits/memory`.
fn with(pointer: &str, value: impl Into<Value>) -> anyhow::Result<Value> {
    let mut order = order();
    *order.pointer_mut(pointer).context("a part of an order")? = value.into();
    Ok(order)
}

/// Returns the error of a helper that must compile nothing.
fn refused(order: &Value, component: &[u8]) -> anyhow::Result<String> {
    let output = compiled(order, component)?;
    ensure!(!output.status.success(), "it was compiled: {output:?}");
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn within_its_limits_a_component_is_compiled() -> anyhow::Result<()> {
    let output = compiled(&order(), &component()?)?;
    assert!(output.status.success() && output.stderr.is_empty(), "{:?}", output.stderr);
    assert!(output.stdout.len() > component()?.len(), "{} bytes of code", output.stdout.len());
    Ok(())
}

#[test]
fn a_module_is_compiled_without_the_component_that_it_is_from() -> anyhow::Result<()> {
    // The smallest module: magic number and version.
    let module = b"\0asm\x01\0\0\0";
    let output = compiled(&with("/work", "module")?, module)?;
    assert!(output.status.success() && !output.stdout.is_empty(), "{output:?}");
    for (part, other) in [("module", component()?.as_slice()), ("component", module)] {
        let told = refused(&with("/work", part)?, other)?;
        assert!(told.starts_with("the component cannot be compiled: "), "{told:?}");
    }
    Ok(())
}

#[test]
fn past_any_limit_there_is_no_code() -> anyhow::Result<()> {
    let component = component()?;
    // Too little memory to start: the process may end in any way, but compiles nothing.
    assert!(!refused(&with("/limits/memory", 1 << 20)?, &component)?.is_empty());
    let short = component.len() as u64 - 1;
    let told = refused(&with("/limits/input", short)?, &component)?;
    assert_eq!(told, format!("the input is larger than {short} bytes\n"));
    let told = refused(&with("/starter", 1)?, &component)?;
    assert_eq!(told, "the process that started it is gone\n");
    let told = refused(&order(), b"no component")?;
    assert!(told.starts_with("the component cannot be compiled: "), "{told:?}");
    let told = refused(&json!({"memory": 1}), &component)?;
    assert!(told.starts_with("the last argument must be a job"), "{told}");
    Ok(())
}

#[test]
fn code_that_is_larger_than_it_may_be_is_not_handed_out() -> anyhow::Result<()> {
    let output = compiled(&with("/limits/output", 4096)?, &component()?)?;
    assert!(!output.status.success() && output.stdout.is_empty(), "{} bytes", output.stdout.len());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told, "what is made of it has more than 4096 bytes\n");
    Ok(())
}

/// Returns true if the kernel reports the process as sandboxed; `privileges` is the mask of its remaining
/// capabilities.
fn fenced(pid: u32, privileges: u64) -> anyhow::Result<bool> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.strip_prefix(':')).unwrap_or_default().trim()
    };
    let left = u64::from_str_radix(field("CapPrm"), 16)? | u64::from_str_radix(field("CapEff"), 16)?;
    Ok((field("NoNewPrivs"), field("Seccomp"), left & !privileges) == ("1", "2", 0))
}

#[test]
fn runners_and_compile_helpers_stand_behind_the_systems_fence() -> anyhow::Result<()> {
    let mut helper = started(&order())?;
    let deadline = Instant::now() + UNTIL;
    // The helper waits for its component.
    while !fenced(helper.id(), 0)? {
        ensure!(Instant::now() < deadline, "a helper waits for its component without a fence");
        std::thread::yield_now();
    }
    helper.kill()?;
    helper.wait()?;

    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", [])?;
    periapt.wait_for(["model"])?;
    let agent = periapt.agent_process("local")?;
    let tasks = fs::read_dir(format!("/proc/{agent}/task"))?.flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let children: Vec<u32> =
        lists.collect::<String>().split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    // The unit has run its hooks there. A runner keeps the rights over files in directories that its user cannot enter.
    assert_eq!(children.len(), 1, "the runner of the one model");
    let to_files = (1 << 1) | (1 << 2) | (1 << 3);
    assert!(
        fenced(children[0], to_files)?,
        "{}",
        fs::read_to_string(format!("/proc/{}/status", children[0]))?
    );
    Ok(())
}

/// The kernel enforces each of these limits, without the compiler's help.
#[test]
fn the_kernel_keeps_the_limits_before_a_byte_is_read() -> anyhow::Result<()> {
    let mut order = with("/limits/cpu-seconds", 7)?;
    order["limits"]["memory"] = (1_u64 << 30).into();
    order["limits"]["output"] = (3 << 20).into();
    let mut helper = started(&order)?;
    let expected = [
        ("Max cpu time", "7"),
        ("Max data size", "1073741824"),
        ("Max file size", "3145728"),
        ("Max open files", "16"),
        ("Max core file size", "1"),
    ];
    let deadline = Instant::now() + UNTIL;
    // The helper waits for its component.
    loop {
        let shown = fs::read_to_string(format!("/proc/{}/limits", helper.id()))?;
        let holds = |(name, value): &(&str, &str)| {
            let line = shown.lines().find_map(|line| line.strip_prefix(name));
            let mut words = line.unwrap_or_default().split_whitespace();
            (words.next(), words.next()) == (Some(*value), Some(*value))
        };
        if expected.iter().all(holds) {
            break;
        }
        ensure!(Instant::now() < deadline, "the limits are {shown}");
    }
    helper.kill()?;
    helper.wait()?;
    Ok(())
}
