//! Commands that end scripts or loops, or do nothing.

use super::call::Call;
use crate::interpreter::Unwind;

pub(super) fn yes(_: &mut Call<'_>) -> Result<u8, Unwind> {
    Ok(0)
}

pub(super) fn no(_: &mut Call<'_>) -> Result<u8, Unwind> {
    Ok(1)
}

/// Runs `exit [CODE]`. The default is the last command's exit code.
pub(super) fn exit(call: &mut Call<'_>) -> Result<u8, Unwind> {
    let code = match call.arguments {
        [] => call.shell.status,
        [code, ..] => match code.parse::<i64>() {
            // The lowest eight bits count, as for a process.
            Ok(code) => u8::try_from(code.rem_euclid(256)).unwrap_or(u8::MAX),
            Err(_) => call.fail(2, &format!("{code}: numeric argument required"))?,
        },
    };
    Err(Unwind::Exit(code))
}

pub(super) fn end_loops(call: &mut Call<'_>) -> Result<u8, Unwind> {
    match count(call)? {
        Some(count) => Err(Unwind::Break(count)),
        None => Ok(1),
    }
}

pub(super) fn next_turn(call: &mut Call<'_>) -> Result<u8, Unwind> {
    match count(call)? {
        Some(count) => Err(Unwind::Continue(count)),
        None => Ok(1),
    }
}

/// Parses the loop count of `break` and `continue`. None after an error, which it has written.
fn count(call: &mut Call<'_>) -> Result<Option<u32>, Unwind> {
    call.shell.status = 0;
    let Some(text) = call.arguments.first() else { return Ok(Some(1)) };
    match text.parse() {
        Ok(count) if count > 0 => Ok(Some(count)),
        _ => {
            call.complain(&format!("{text}: loop count out of range"))?;
            Ok(None)
        }
    }
}
