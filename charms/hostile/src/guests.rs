//! The guests, one function each. They take the unit, and return only if the sandbox lets them.

mod abi;
mod endings;
mod floods;
mod oversized;
mod storage;
mod time;
mod wasi;

pub(crate) use abi::*;
pub(crate) use endings::*;
pub(crate) use floods::*;
pub(crate) use oversized::*;
pub(crate) use storage::*;
pub(crate) use time::*;
pub(crate) use wasi::*;
