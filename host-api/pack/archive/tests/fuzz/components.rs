//! Components that no compiler makes: any kind of item under any kind of name.

use proptest::{prelude::*, sample::select};

/// Names of every kind in the binary format, and names of the contract and of WASI.
const NAMES: &[&str] = &[
    "f",
    "a-b",
    "a:b/c",
    "a:b/c@1.0.0",
    "a:b/wit",
    "unlocked-dep=<a:b>",
    "unlocked-dep=<a:b@{>=1.0.0}>",
    "locked-dep=<a:b>",
    "locked-dep=<a:b@1.0.0>,integrity=<sha256-YWJj>",
    "url=<https://example.invalid>",
    "integrity=<sha256-YWJj>",
    "[constructor]r",
    "[method]r.f",
    "[static]r.f",
    "r",
    "periapt:charm/handler@0.1.0",
    "periapt:charm/handler@0.2.0",
    "periapt:charm/config@0.1.0",
    "periapt:charm/types@0.1.0",
    "wasi:cli/stdout@0.2.0",
    "wasi:io/streams@0.2.6",
    "wasi:http/types@0.2.0",
];

/// Kinds of imports and exports.
const KINDS: &[&str] = &[
    "(func)",
    r#"(func (param "x" u8) (result string))"#,
    r#"(func async (param "x" (list u8)))"#,
    "(instance)",
    r#"(instance (export "f" (func)))"#,
    r#"(instance (export "handle" (func)))"#,
    r#"(instance (export "a:b/c" (func)))"#,
    r#"(instance (export "a:b/c" (instance (export "f" (func)))))"#,
    r#"(instance (export "r" (type (sub resource))))"#,
    r#"(instance (export "r" (type (sub resource))) (export "[constructor]r" (func (result (own 0)))))"#,
    r#"(instance (type (record (field "x" u8))) (export "t" (type (eq 0))) (export "f" (func (param "x" 1))))"#,
    "(component)",
    r#"(component (import "a:b/c" (func)) (export "a:b/d" (component)))"#,
    "(type (sub resource))",
    "(core module)",
    r#"(core module (import "" "" (func)))"#,
];

/// Returns a component in text form. Some are invalid.
pub(crate) fn component() -> impl Strategy<Value = String> {
    let import = (select(NAMES), select(KINDS)).prop_map(|(name, kind)| format!("(import {name:?} {kind})"));
    let exported = select(vec!["func", "instance", "component", "type", "core module", "value"]);
    let export = (select(NAMES), exported, 0..3_u8)
        .prop_map(|(name, kind, index)| format!("(export {name:?} ({kind} {index}))"));
    let own = select(vec![
        "(component)",
        "(instance)",
        "(type u8)",
        r#"(type (component (export "a:b/wit" (component))))"#,
        r#"(type (record (field "x" u8)))"#,
        "(type (resource (rep i32)))",
        "(core module)",
        r#"(instance (export "a:b/c" (instance 0)))"#,
        r#"(instance (export "f" (func 0)))"#,
    ]);
    let item = prop_oneof![4 => import, 3 => export, 2 => own.prop_map(ToOwned::to_owned)];
    prop::collection::vec(item, 1..8).prop_map(|items| format!("(component {})", items.join(" ")))
}
