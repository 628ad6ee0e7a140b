//! Makes the constructors the module's start function.
//!
//! Linkers do not export `_initialize` from a `cdylib`, and then the bindings run the constructors at the first call.
//! With the C library's reactor object, exporting it is enough; otherwise the charm has an `_initialize` of its own.

fn main() {
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    println!("cargo::rustc-check-cfg=cfg(reactor_object)");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if flags.contains("crt1-reactor.o") {
        println!("cargo::rustc-cfg=reactor_object");
        println!("cargo::rustc-cdylib-link-arg=--export=_initialize");
    }
}
