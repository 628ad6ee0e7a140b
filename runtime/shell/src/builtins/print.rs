//! `echo` and `seq`.

use super::{
    call::Call,
    escapes::{EscapeContext, unescape},
};
use crate::interpreter::Unwind;

/// Runs `echo [-n] [-e] [-E] [WORD...]`, as bash does.
pub(super) fn echo(call: &mut Call<'_>) -> Result<u8, Unwind> {
    let (mut ends, mut escapes) = (true, false);
    let mut words = call.arguments;
    while let [first, rest @ ..] = words {
        let letters = first.strip_prefix('-').filter(|letters| !letters.is_empty());
        let Some(letters) = letters.filter(|letters| letters.chars().all(|c| "neE".contains(c))) else {
            break;
        };
        ends &= !letters.contains('n');
        for letter in letters.chars().filter(|letter| *letter != 'n') {
            escapes = letter == 'e';
        }
        words = rest;
    }
    call.shell.pay(words.iter().map(|word| word.len() + 1).fold(0, usize::saturating_add))?;
    let text = words.join(" ");
    let mut bytes = if escapes { Vec::new() } else { text.clone().into_bytes() };
    if escapes {
        ends &= unescape(&text, EscapeContext::Echo, &mut bytes).is_continue();
    }
    if ends {
        bytes.push(b'\n');
    }
    call.shell.write(call.streams.stdout, &bytes)?;
    Ok(0)
}

/// Runs `seq [FIRST [STEP]] LAST`.
pub(super) fn seq(call: &mut Call<'_>) -> Result<u8, Unwind> {
    let mut numbers = Vec::new();
    for argument in call.arguments {
        match argument.parse::<i64>() {
            Ok(number) => numbers.push(number),
            Err(_) => return call.fail(1, &format!("invalid integer argument: ‘{argument}’")),
        }
    }
    let (first, step, last) = match numbers.as_slice() {
        [last] => (1, 1, *last),
        [first, last] => (*first, 1, *last),
        [first, step, last] if *step != 0 => (*first, *step, *last),
        _ => return call.fail(1, "one to three numbers are expected, and no step of 0"),
    };
    let mut at = first;
    while (step > 0 && at <= last) || (step < 0 && at >= last) {
        call.shell.pay(32)?;
        call.say(&format!("{at}\n"))?;
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    Ok(0)
}
