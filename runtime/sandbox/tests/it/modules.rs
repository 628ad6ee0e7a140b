//! Modules that no compiler emits, each in a component.

use periapt_sandbox::{Budgets, Options, Sandbox};

use crate::world::SANDBOX;

macro_rules! tests {
    ($($name:ident: $file:literal)*) => {
        $(#[test]
        fn $name() {
            let text = include_str!(concat!("../../../../charms/hostile/", $file));
            endings::$name(&wrapped(text));
        })*
    };
}
hostile_modules!(tests);

/// Returns a component that only instantiates a module.
fn wrapped(module: &str) -> Vec<u8> {
    let module = module.trim().strip_prefix("(module").unwrap();
    let text = format!("(component (core module $m {module} (core instance (instantiate $m)))");
    wat::parse_str(text).unwrap()
}

mod endings {
    use super::*;

    pub(super) fn typed_call_indirect(component: &[u8]) {
        let error = SANDBOX.compile(component).unwrap_err();
        assert!(error.to_string().contains("gc proposal"), "{error}");
    }

    pub(super) fn huge_memory(component: &[u8]) {
        refuses(component, "memory");
    }

    pub(super) fn huge_table(component: &[u8]) {
        refuses(component, "table");
    }
}

/// Checks that a component is refused before any hook, when it is loaded at the latest.
fn refuses(component: &[u8], word: &str) {
    let error = SANDBOX.compile_in_process(component).unwrap_err();
    assert!(error.to_string().contains(word), "{error}");
}

#[test]
fn what_is_no_component_does_not_compile() {
    for bytes in [b"".as_slice(), b"\0asm", b"\0asm\x01\0\0\0", b"#!/bin/sh"] {
        assert!(SANDBOX.compile(bytes).is_err());
    }
}

#[test]
fn a_component_without_handler_is_refused_by_name() {
    let loaded = SANDBOX.compile_in_process(&wrapped("(module)")).unwrap();
    let error = SANDBOX.prepare(&loaded, None).unwrap_err();
    assert!(error.to_string().contains("periapt:charm/handler"), "{error}");
}

#[test]
fn an_import_that_nobody_offers_is_refused_by_name() {
    let text = r#"(component (import "wasi:nn/tensor@0.2.0" (instance (export "f" (func)))))"#;
    let loaded = SANDBOX.compile_in_process(&wat::parse_str(text).unwrap()).unwrap();
    let error = SANDBOX.prepare(&loaded, None).unwrap_err();
    assert!(error.to_string().contains("wasi:nn/tensor"), "{error}");
}

#[test]
fn proposals_that_are_off_are_refused() {
    for (module, proposal) in [
        ("(module (memory i64 1))", "memory64"),
        ("(module (memory 1 1 shared))", "threads"),
        ("(module (func $f (return_call $f)))", "tail calls"),
        ("(module (func (drop (i32x4.relaxed_trunc_f32x4_s (v128.const i32x4 0 0 0 0)))))", "relaxed"),
    ] {
        let error = SANDBOX.compile(&wrapped(module)).unwrap_err();
        assert!(error.to_string().contains(proposal), "{error}");
    }
}

#[test]
fn several_memories_are_taken_because_composed_components_have_them() {
    SANDBOX.compile_in_process(&wrapped("(module (memory 1) (memory 1))")).unwrap();
}

#[test]
fn a_sandbox_gives_its_thread_back() {
    let sandbox = Sandbox::new(Options { hooks_in_flight: 1, ..Options::default() }).unwrap();
    // Dropping the sandbox joins the ticker's thread. A thread that does not stop would block the
    // test.
    drop(sandbox);
    assert!(Budgets::default().fuel > 0);
}
