use wasmtime::{Engine, Module, Store, component};

use super::*;
use crate::{Options, engine};

/// Returns a large module whose `f` doubles the result of `env.f`.
fn module(imports: &str) -> String {
    let much = "(drop (i32.const 123456789))".repeat(LEAST_CODE / 5);
    format!(
        "(core module $big {imports} (import \"env\" \"f\" (func $f (result i32)))
            (import \"env\" \"m\" (memory 1)) (import \"env\" \"t\" (table 1 funcref))
            (export \"m\" (memory 0)) (export \"t\" (table 0)) (global (export \"g\") i32 (i32.const 7))
            (func (export \"f\") (result i32) (i32.mul (call $f) (i32.const 2)))
            (func (export \"much\") {much}))"
    )
}

/// Returns a large component with an instance of the large module and an export of its `f`.
fn component(before: &str, big: &str, after: &str) -> Vec<u8> {
    let text = format!(
        "(component {before}
            (core module $env (func (export \"f\") (result i32) (i32.const 21))
                (memory (export \"m\") 1) (table (export \"t\") 1 funcref))
            {big}
            (core instance $env (instantiate $env))
            (core instance $one (instantiate $big (with \"env\" (instance $env))))
            (func (export \"f\") (result u32) (canon lift (core func $one \"f\")))
            {after})"
    );
    let mut bytes = wat::parse_str(text).unwrap();
    // A custom section: its number, its length, and an empty name.
    bytes.push(0);
    let filler = vec![0; SMALLEST_COMPONENT];
    bytes.extend(leb(filler.len()));
    bytes.extend(filler);
    bytes
}

fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Returns the result of a component's `f` with its shared modules linked.
fn answer(engine: &Engine, bytes: &[u8]) -> u32 {
    let shared = shared_modules(bytes);
    let rest = component::Component::from_binary(engine, &rest(bytes, &shared)).unwrap();
    let mut linker = component::Linker::new(engine);
    for module in &shared {
        let name = SharedModule::import_name(&module.digest);
        let module = Module::from_binary(engine, &bytes[module.range.clone()]).unwrap();
        linker.root().module(&name, &module).unwrap();
    }
    let mut store = Store::new(engine, ());
    store.set_fuel(1_000_000).unwrap();
    store.set_epoch_deadline(1);
    let instance = linker.instantiate(&mut store, &rest).unwrap();
    instance.get_typed_func::<(), (u32,)>(&mut store, "f").unwrap().call(&mut store, ()).unwrap().0
}

#[test]
fn a_module_of_much_code_is_compiled_by_itself_and_the_rest_runs_with_it() {
    let engine = engine::build(&Options::default()).unwrap();
    let bytes = component("", &module(""), "");
    let shared = shared_modules(&bytes);
    assert_eq!(shared.len(), 1);
    assert!(rest(&bytes, &shared).len() + LEAST_CODE < bytes.len());
    assert_eq!(answer(&engine, &bytes), 42);
    let other = component("(core module $more)", &module(""), "");
    assert_eq!(shared_modules(&other)[0].digest, shared[0].digest, "another component shares it");
    assert_eq!(answer(&engine, &other), 42);
}

/// Returns an instance of a module with the large one's imports.
fn instance(module: &str) -> String {
    format!("(core instance (instantiate {module} (with \"env\" (instance $env))))")
}

#[test]
fn a_module_that_is_there_twice_is_imported_once() {
    let engine = engine::build(&Options::default()).unwrap();
    let again = module("").replace("$big", "$again (@name \"big\")");
    let bytes = component("", &module(""), &format!("{again} {}", instance("$again")));
    assert_eq!(shared_modules(&bytes).len(), 1);
    assert_eq!(answer(&engine, &bytes), 42);
}

#[test]
fn what_cannot_be_imported_stays_where_it_is() {
    let twice = module("(import \"env\" \"f\" (func (result i32)))");
    let types = "(core type (module))";
    for bytes in [component("", &twice, ""), component(types, &module(""), "")] {
        assert!(shared_modules(&bytes).is_empty());
    }
    let small = wat::parse_str("(component (core module))").unwrap();
    assert!(matches!(rest(&small, &shared_modules(&small)), Cow::Borrowed(_)));
}

#[test]
fn what_the_engine_would_not_count_stays_where_it_is() {
    let owns = |what: &str| component("", &module("").replace("(global", &format!("{what} (global")), "");
    for bytes in
        [owns("(memory 1)"), owns("(table 1 funcref)"), component("", &module(""), &instance("$big"))]
    {
        assert!(shared_modules(&bytes).is_empty());
    }
}

#[test]
fn what_others_could_make_instances_of_stays_where_it_is() {
    for after in [
        "(component (alias outer 1 $big (core module)))",
        "(component (component (alias outer 2 $big (core module))))",
        "(export \"big\" (core module $big))",
        "(instance (export \"big\" (core module $big)))",
        "(component $inner (import \"m\" (core module))) (instance (instantiate $inner (with \"m\" (core module $big))))",
        "(import \"m\" (core module))",
    ] {
        assert!(shared_modules(&component("", &module(""), after)).is_empty(), "{after}");
    }
    let inner = "(component $inner (core module $m) (export \"m\" (core module $m))) (instance $i (instantiate $inner))
        (alias export $i \"m\" (core module))";
    assert!(shared_modules(&component("", &module(""), inner)).is_empty());
}

#[test]
fn a_shape_that_is_large_stays_where_it_is() {
    let exports = |count: usize, name: &str| -> String {
        (0..count).map(|number| format!("(export \"{name}{number}\" (global 0))")).collect()
    };
    let of = |exports: &str| {
        component(
            "",
            &module("").replace("(func (export \"f\")", &format!("{exports} (func (export \"f\")")),
            "",
        )
    };
    assert_eq!(shared_modules(&of(&exports(1_000, ""))).len(), 1);
    assert!(shared_modules(&of(&exports(MOST, ""))).is_empty());
    assert!(shared_modules(&of(&exports(20, &"n".repeat(60_000)))).is_empty());
}

/// The most entries that a shape may have.
const MOST: usize = 50_000;

#[test]
fn other_rules_are_another_version() {
    // A change of one of these constants needs a new version, and then a change here.
    assert_eq!((VERSION, SMALLEST_COMPONENT, LEAST_CODE, MOST_MODULES), (3, 4 << 20, 128 << 10, 12));
}

#[test]
fn what_is_cut_short_or_no_component_is_left_to_the_compiler() {
    let env = "(core module $env (func (export \"f\") (result i32) unreachable)
        (memory (export \"m\") 1) (table (export \"t\") 1 funcref))";
    let one = format!("(core instance $env (instantiate $env)) {}", instance("$big"));
    let bytes = wat::parse_str(format!("(component {env} {} {one})", module(""))).unwrap();
    for end in (0..bytes.len()).step_by(97) {
        let truncated = &bytes[..end];
        find(truncated).unwrap_or_default();
        let _ = shape::of(truncated);
    }
    assert!(shared_modules(&vec![0xff; SMALLEST_COMPONENT]).is_empty());
    // The header of a module before the sections of a component.
    let other = [b"\0asm\x01\0\0\0", &bytes[8..]].concat();
    assert!(find(&other).map_or(true, |found| found.is_empty()));
    assert!(find(&bytes).unwrap().len() == 1, "it is small, but for that it would be divided");
}

#[test]
fn no_more_modules_than_may_be_go_by_themselves() {
    let more: String = (0..=MOST_MODULES)
        .map(|number| {
            let own = format!("(func (export \"{number}\") ");
            let name = format!("$m{number}");
            let module = module("").replace("$big", &name).replace("(func (export \"much\")", &own);
            format!("{module} {}", instance(&name))
        })
        .collect();
    let bytes = component("", &module(""), &more);
    assert_eq!(shared_modules(&bytes).len(), MOST_MODULES);
}
