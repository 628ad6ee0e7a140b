//! From a core module to a component.

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::{ReaderPanicked, guard::guarded, world::WIT};

/// Why a module cannot become a component.
#[derive(Debug, thiserror::Error)]
pub enum AdaptError {
    /// Neither a module nor a component.
    #[error("not a WebAssembly binary")]
    NotWasm,
    /// A program with `main`, which ends after one run.
    #[error(
        "the module is a command (it exports `_start`); build a library: `crate-type = [\"cdylib\"]`, `-mexec-model=reactor`"
    )]
    Command,
    /// A module that no hook can be given to.
    #[error(
        "the module has no handler: it exports no function `handle` of `periapt:charm/handler`, which a language's SDK does for whoever uses it"
    )]
    NoHandler,
    /// The encoder's word.
    #[error("the module cannot be made a component: {0}")]
    Encode(String),
    /// The encoder has a defect.
    #[error(transparent)]
    Reader(#[from] ReaderPanicked),
}

/// Whether the bytes are a component already.
fn is_component(bytes: &[u8]) -> bool {
    // The header's second half: version 13, layer 1 (0: a core module).
    bytes.get(4..8) == Some(&[0x0d, 0x00, 0x01, 0x00])
}

/// Whether a module has the custom section in which bindings leave their world.
fn describes_its_world(bytes: &[u8]) -> bool {
    const SECTION: &[u8] = b"component-type";
    // The name alone: a module that has it elsewhere says what is missing when it is encoded.
    bytes.windows(SECTION.len()).any(|window| window == SECTION)
}

/// The function by which a module lends memory to the adapter.
const ADAPTERS_REALLOC: &[u8] = b"cabi_realloc_adapter";

/// Whether a module lends the adapter memory of its own. Go's must: its runtime takes all memory behind its own for its heap,
/// also what somebody else has grown.
fn lends_memory(bytes: &[u8]) -> bool {
    // The name alone: a module that has it elsewhere has `cabi_realloc`, or is given memory as if it lent none.
    bytes.windows(ADAPTERS_REALLOC.len()).any(|window| window == ADAPTERS_REALLOC)
}

/// Turns a core module (WASI preview 1 or none) into a component. It was built with a WIT world, whose description it holds; one
/// that holds none, as linkers know nothing of it that no bindings were generated for, is taken to be of the contract's.
/// A component passes through unchanged.
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
    let encode = || {
        let mut module = bytes.to_vec();
        if !describes_its_world(bytes) {
            let mut resolve = Resolve::default();
            let package = resolve.push_str("charm.wit", WIT)?;
            let world = resolve.select_world(&[package], Some("charm"))?;
            embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
        }
        ComponentEncoder::default()
            .validate(true)
            .module(&module)?
            .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?
            // Else the adapter's stack is not taken from `cabi_realloc`, which may need what is not initialized yet.
            .realloc_via_memory_grow(!lends_memory(bytes))
            .encode()
    };
    guarded(encode)?.map_err(|error| {
        let text = format!("{error:#}");
        let lacks = |what: &str| text.contains("failed to find export") && text.contains(what);
        match text {
            _ if text.contains("_start") => AdaptError::Command,
            _ if lacks("`periapt:charm/handler@") => AdaptError::NoHandler,
            text => AdaptError::Encode(text),
        }
    })
}
