//! `test` and `[`.

use super::call::Call;
use crate::{
    FileKind, FileStat,
    interpreter::{Step, Unwind},
};

pub(super) fn test(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let arguments = call.arguments;
        expression(&mut call, arguments).await
    })
}

/// Runs `[ EXPRESSION ]`.
pub(super) fn bracket(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        match call.arguments {
            [arguments @ .., last] if last == "]" => expression(&mut call, arguments).await,
            _ => call.fail(2, "missing `]'"),
        }
    })
}

/// Evaluates an expression: 0 for true, 1 for false, 2 for an error. `-o` binds weaker than `-a`.
async fn expression(call: &mut Call<'_>, arguments: &[String]) -> Result<u8, Unwind> {
    let mut either = false;
    for all in arguments.split(|argument| argument == "-o") {
        let mut both = true;
        for one in all.split(|argument| argument == "-a") {
            call.shell.step().await?;
            match primary(call, one).await? {
                Ok(holds) => both &= holds,
                Err(error) => return call.fail(2, &error.to_string()),
            }
        }
        either |= both;
    }
    Ok(u8::from(!either))
}

/// The reason why words are no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum ExpressionError {
    #[error("too many arguments")]
    TooManyArguments,
    #[error("{0}: unary operator expected")]
    UnknownUnary(String),
    #[error("{0}: binary operator expected")]
    UnknownBinary(String),
    #[error("{0}: integer expression expected")]
    NoInteger(String),
}

async fn primary(call: &mut Call<'_>, arguments: &[String]) -> Result<Result<bool, ExpressionError>, Unwind> {
    let negations = arguments.iter().take_while(|argument| *argument == "!").count();
    // A lone `!` is a text.
    let negations = negations.min(arguments.len().saturating_sub(1));
    let words: Vec<&str> = arguments.iter().skip(negations).map(String::as_str).collect();
    let holds = match words.as_slice() {
        [] => Ok(false),
        [text] => Ok(!text.is_empty()),
        ["-n", text] => Ok(!text.is_empty()),
        ["-z", text] => Ok(text.is_empty()),
        [option, path] => match file(call, option, path).await? {
            Some(holds) => Ok(holds),
            None => Err(ExpressionError::UnknownUnary((*option).to_owned())),
        },
        [one, operator, other] => compared(one, operator, other),
        _ => Err(ExpressionError::TooManyArguments),
    };
    Ok(holds.map(|holds| holds != (negations % 2 == 1)))
}

/// Tests a file. None for an unknown option. Every existing file is readable. No file is executable, whatever its
/// mode in the charm; a directory is.
async fn file(call: &mut Call<'_>, option: &str, path: &str) -> Result<Option<bool>, Unwind> {
    let is_directory = |found: FileStat| found.kind == FileKind::Directory;
    let holds: fn(FileStat) -> bool = match option {
        "-e" | "-r" => |_| true,
        "-f" => |found| found.kind == FileKind::File,
        "-d" | "-x" => is_directory,
        "-s" => |found| found.kind == FileKind::Directory || found.size > 0,
        "-w" => |found| found.writable,
        "-h" | "-L" | "-p" | "-S" => |_| false,
        _ => return Ok(None),
    };
    Ok(Some(call.shell.stat(path).await?.is_ok_and(holds)))
}

fn compared(one: &str, operator: &str, other: &str) -> Result<bool, ExpressionError> {
    let number = |text: &str| {
        let number = text.trim().parse::<i64>();
        number.map_err(|_| ExpressionError::NoInteger(text.chars().take(64).collect()))
    };
    Ok(match operator {
        "=" | "==" => one == other,
        "!=" => one != other,
        "<" => one < other,
        ">" => one > other,
        "-eq" => number(one)? == number(other)?,
        "-ne" => number(one)? != number(other)?,
        "-lt" => number(one)? < number(other)?,
        "-le" => number(one)? <= number(other)?,
        "-gt" => number(one)? > number(other)?,
        "-ge" => number(one)? >= number(other)?,
        _ => return Err(ExpressionError::UnknownBinary(operator.to_owned())),
    })
}
