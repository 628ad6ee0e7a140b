//! `cat`, `head`, `tail` and `wc`.

use super::call::{Call, Parsed, lines};
use crate::interpreter::{Step, Unwind};

pub(super) fn cat(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(parsed) = call.options("", "")? else { return Ok(1) };
        let (contents, all) = call.contents(&parsed.operands).await?;
        for (_, content) in contents {
            call.shell.write(call.streams.stdout, &content)?;
        }
        Ok(u8::from(!all))
    })
}

/// The end of a text that a command shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Tail,
}

pub(super) fn head(call: Call<'_>) -> Step<'_, u8> {
    Box::pin(part(call, Part::Head))
}

pub(super) fn tail(call: Call<'_>) -> Step<'_, u8> {
    Box::pin(part(call, Part::Tail))
}

/// Runs `head` or `tail` with `-n COUNT` or `-c COUNT`; `-COUNT` is `-n COUNT`.
async fn part(mut call: Call<'_>, part: Part) -> Result<u8, Unwind> {
    let is_count =
        |argument: &String| argument.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok());
    let mut plain = call.arguments.to_vec();
    if let Some(count) = plain.first_mut().filter(|first| is_count(first)) {
        count.insert(1, 'n');
    }
    let Some(parsed) = (Call { arguments: &plain, ..call.again() }).options("q", "nc")? else { return Ok(1) };
    let in_bytes = parsed.value('c');
    let text = in_bytes.or(parsed.value('n')).unwrap_or("10");
    // `head -n -1` and `tail -n +2` count from the other end.
    let other = if part == Part::Head { '-' } else { '+' };
    let from_other = text.starts_with(other);
    let Ok(count) = text.trim_start_matches(['-', '+']).parse::<usize>() else {
        return call.fail(1, &format!("invalid number: ‘{text}’"));
    };
    let (contents, all) = call.contents(&parsed.operands).await?;
    let several = contents.len() > 1;
    for (index, (path, content)) in contents.iter().enumerate() {
        call.shell.pay(content.len().saturating_mul(2))?;
        if several {
            let gap = if index > 0 { "\n" } else { "" };
            call.say(&format!("{gap}==> {path} <==\n"))?;
        }
        let total = if in_bytes.is_some() { content.len() } else { lines(content).count() };
        // The position at which the text is split, counted in units from the beginning of the text.
        let split = match (part, from_other) {
            (Part::Head, false) => count.min(total),
            (Part::Head, true) | (Part::Tail, false) => total.saturating_sub(count),
            (Part::Tail, true) => count.saturating_sub(1).min(total),
        };
        let at = match in_bytes {
            Some(_) => split,
            None => lines(content).take(split).map(<[u8]>::len).sum(),
        };
        let (front, back) = content.split_at(at.min(content.len()));
        call.shell.write(call.streams.stdout, if part == Part::Head { front } else { back })?;
    }
    Ok(u8::from(!all))
}

/// The number of times that `wc` reads a byte.
const COUNTING: usize = 4;

/// Runs `wc [-l] [-w] [-c] [FILE...]`.
pub(super) fn wc(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(parsed) = call.options("lwcm", "")? else { return Ok(1) };
        let (contents, all) = call.contents(&parsed.operands).await?;
        let mut rows: Vec<(Vec<usize>, String)> = Vec::new();
        for (path, content) in contents {
            call.shell.pay(content.len().saturating_mul(COUNTING))?;
            rows.push((counts(&content, &parsed), path));
        }
        if rows.len() > 1 {
            let columns = rows.first().map_or(0, |(counts, _)| counts.len());
            let sum = |column: usize| rows.iter().filter_map(|(counts, _)| counts.get(column)).sum();
            rows.push(((0..columns).map(sum).collect(), "total".to_owned()));
        }
        let from_input = parsed.operands.is_empty();
        let widest =
            rows.iter().flat_map(|(counts, _)| counts).max().map_or(1, |most| most.to_string().len());
        let alone = rows.iter().all(|(counts, _)| counts.len() == 1);
        let width = match from_input {
            _ if alone && rows.len() == 1 => 1,
            true => widest.max(7),
            false => widest,
        };
        for (counts, path) in rows {
            let mut line: Vec<String> = counts.iter().map(|count| format!("{count:width$}")).collect();
            if !from_input {
                line.push(path);
            }
            call.say(&format!("{}\n", line.join(" ")))?;
        }
        Ok(u8::from(!all))
    })
}

fn counts(content: &[u8], parsed: &Parsed) -> Vec<usize> {
    let text = String::from_utf8_lossy(content);
    let none = !['l', 'w', 'c', 'm'].into_iter().any(|option| parsed.has(option));
    let wanted = |option: char| none || parsed.has(option);
    let mut counts = Vec::new();
    if wanted('l') {
        counts.push(content.iter().filter(|byte| **byte == b'\n').count());
    }
    if wanted('w') {
        counts.push(text.split_whitespace().count());
    }
    if parsed.has('m') {
        counts.push(text.chars().count());
    }
    if wanted('c') {
        counts.push(content.len());
    }
    counts
}
