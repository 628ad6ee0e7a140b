//! Guests that break the contract between guest and host, in ways that safe code cannot.

use periapt_sdk::bindings::periapt::charm::log;
use periapt_sdk::{Error, Level, Result, Unit};

/// Logs a text that is not UTF-8.
pub(crate) fn bad_utf8(_: &Unit) -> Result {
    let bytes = std::hint::black_box([b'o', b'k', 0xff, 0xfe]);
    // SAFETY: none. The text is only passed on, and the host must detect the error.
    log::write(Level::Info, unsafe { std::str::from_utf8_unchecked(&bytes) });
    Err(Error::new("escaped: the host took bytes that are no text"))
}

/// Logs a text that lies beyond the end of memory.
pub(crate) fn bad_pointer(_: &Unit) -> Result {
    let pointer = std::hint::black_box(0xffff_fff0_usize) as *const u8;
    // SAFETY: none. The guest reads nothing here, and the host must detect the error.
    let text = unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(pointer, 4096)) };
    log::write(Level::Info, text);
    Err(Error::new("escaped: the host read beyond the guest's memory"))
}
