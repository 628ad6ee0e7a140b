//! The conversion of core modules to components.

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::{ReaderPanicked, guard::guarded, world::WIT};

/// A module that cannot become a component.
#[derive(Debug, thiserror::Error)]
pub enum AdaptError {
    /// The bytes are neither a module nor a component.
    #[error("not a WebAssembly binary")]
    NotWasm,
    /// The module is a program with `main`, which ends after one run.
    #[error(
        "the module is a command (it exports `_start`); build a library: `crate-type = [\"cdylib\"]`, `-mexec-model=reactor`"
    )]
    Command,
    /// The module has no handler for hooks.
    #[error(
        "the module has no handler: it exports no function `handle` of `periapt:charm/handler`, which the SDK of each language provides"
    )]
    NoHandler,
    /// The encoder refuses the module. Holds its message.
    #[error("the module cannot be made a component: {0}")]
    Encode(String),
    /// The encoder panicked.
    #[error(transparent)]
    Reader(#[from] ReaderPanicked),
}

/// Returns true if the bytes are a component.
fn is_component(bytes: &[u8]) -> bool {
    // The header's second half has version 13 and layer 1; a core module has layer 0.
    bytes.get(4..8) == Some(&[0x0d, 0x00, 0x01, 0x00])
}

/// Returns true if a module has the custom section in which bindings describe their world.
fn describes_its_world(bytes: &[u8]) -> bool {
    const SECTION: &[u8] = b"component-type";
    // The search for the bare name may find other bytes. The encoder then reports the missing section.
    bytes.windows(SECTION.len()).any(|window| window == SECTION)
}

/// The export by which a module allocates memory for the adapter.
const ADAPTERS_REALLOC: &[u8] = b"cabi_realloc_adapter";

/// Returns true if a module allocates the adapter's memory itself. Go modules must: Go's runtime takes all linear
/// memory behind its own for its heap, including pages that the adapter grew.
fn lends_memory(bytes: &[u8]) -> bool {
    // The search for the bare name may find other bytes. The adapter then uses `cabi_realloc`, or grows memory.
    bytes.windows(ADAPTERS_REALLOC.len()).any(|window| window == ADAPTERS_REALLOC)
}

/// Converts a core module (WASI preview 1 or none) to a component. Bindings describe the module's WIT world in a
/// custom section. A module without one gets the contract's world. A component stays unchanged.
///
/// # Errors
/// [`AdaptError`]
pub fn adapt(bytes: &[u8]) -> Result<Vec<u8>, AdaptError> {
    if !bytes.starts_with(b"\0asm") {
        return Err(AdaptError::NotWasm);
    }
    if is_component(bytes) {
        return Ok(bytes.to_vec());
    }
    let describe = |module: &mut Vec<u8>| {
        let mut resolve = Resolve::default();
        let package = resolve.push_str("charm.wit", WIT)?;
        let world = resolve.select_world(&[package], Some("charm"))?;
        embed_component_metadata(module, &resolve, world, StringEncoding::UTF8)
    };
    let encode = || {
        let mut module = bytes.to_vec();
        if !describes_its_world(bytes) {
            describe(&mut module).map_err(|error| format!("{error:#}"))?;
        }
        component_of(&module, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)
    };
    guarded(encode)?.map_err(|text| {
        let lacks = |what: &str| text.contains("failed to find export") && text.contains(what);
        match text {
            _ if text.contains("_start") => AdaptError::Command,
            _ if lacks("`periapt:charm/handler@") => AdaptError::NoHandler,
            text => AdaptError::Encode(text),
        }
    })
}

/// Converts a core module to the component of a workload: a program with `main` becomes a command, and a module whose
/// bindings describe its world becomes what they say. A component stays unchanged.
///
/// # Errors
/// [`AdaptError`], but neither [`AdaptError::Command`] nor [`AdaptError::NoHandler`].
pub fn adapt_workload(bytes: &[u8]) -> Result<Vec<u8>, AdaptError> {
    if !bytes.starts_with(b"\0asm") {
        return Err(AdaptError::NotWasm);
    }
    if is_component(bytes) {
        return Ok(bytes.to_vec());
    }
    guarded(|| {
        let adapter = match has_main(bytes) {
            true => WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
            false => WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
        };
        component_of(bytes, adapter)
    })?
    .map_err(AdaptError::Encode)
}

/// Returns true if a module exports the function of a program with `main`. The encoder refuses a module that this
/// cannot read.
fn has_main(bytes: &[u8]) -> bool {
    let sections = Parser::new(0).parse_all(bytes).flatten();
    let mut exports = sections.filter_map(|payload| match payload {
        Payload::ExportSection(exports) => Some(exports),
        _ => None,
    });
    exports.any(|exports| exports.into_iter().flatten().any(|export| export.name == "_start"))
}

/// Encodes a module as a component, or returns the encoder's message.
fn component_of(module: &[u8], adapter: &[u8]) -> Result<Vec<u8>, String> {
    let encode = || {
        ComponentEncoder::default()
            .validate(true)
            .module(module)?
            .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter)?
            // Otherwise the adapter's stack comes from memory.grow: `cabi_realloc` may need a runtime that is not
            // initialized yet.
            .realloc_via_memory_grow(!lends_memory(module))
            .encode()
    };
    encode().map_err(|error| format!("{error:#}"))
}
