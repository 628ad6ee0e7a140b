//! Commands that run other commands.

use periapt_hook::is_hook_tool;

use super::{
    call::Call,
    environment::{is_name, show_environment},
    find,
};
use crate::interpreter::{Step, Unwind};

/// Runs `sh -c TEXT [NAME [ARGUMENT...]]`, `sh FILE [ARGUMENT...]`, or a script from standard
/// input.
pub(super) fn sh(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let outer = call.shell.copied_scope()?;
        let ended = script(&mut call).await;
        call.shell.scope = outer;
        match ended {
            Ok(()) | Err(Unwind::Break(_) | Unwind::Continue(_)) => Ok(call.shell.status),
            Err(Unwind::Exit(code)) => Ok(code),
            Err(unwind) => Err(unwind),
        }
    })
}

async fn script(call: &mut Call<'_>) -> Result<(), Unwind> {
    let scope = &mut call.shell.scope;
    scope.keep_exported();
    (scope.exit_on_failure, scope.refuse_unset, scope.pipe_fails, scope.trace) = (false, false, false, false);
    let mut arguments = call.arguments.iter().peekable();
    let mut is_text = false;
    while let Some(letters) = arguments.peek().and_then(|argument| argument.strip_prefix('-')) {
        arguments.next();
        for letter in letters.chars() {
            let scope = &mut call.shell.scope;
            match letter {
                'c' => is_text = true,
                'e' => scope.exit_on_failure = true,
                'u' => scope.refuse_unset = true,
                'x' => scope.trace = true,
                'o' if arguments.peek().is_some_and(|name| *name == "pipefail") => {
                    arguments.next();
                    scope.pipe_fails = true;
                }
                // `-l` (login shell) and `-` change nothing.
                'l' | '-' => {}
                _ => {
                    call.shell.status = call.fail(2, &format!("option -{letter} is not supported"))?;
                    return Ok(());
                }
            }
        }
    }
    let first = arguments.next();
    let rest: Vec<String> = arguments.cloned().collect();
    let text = match first {
        Some(text) if is_text => {
            call.shell.scope.arguments = if rest.is_empty() { vec!["sh".to_owned()] } else { rest };
            text.clone()
        }
        None if is_text => {
            call.shell.status = call.fail(2, "-c: option requires an argument")?;
            return Ok(());
        }
        file => {
            let path = file.map_or("-", String::as_str);
            let Some(content) = call.content(path).await? else {
                call.shell.status = 127;
                return Ok(());
            };
            call.shell.scope.arguments = std::iter::once(path.to_owned()).chain(rest).collect();
            String::from_utf8_lossy(&content).into_owned()
        }
    };
    call.shell.status = 0;
    call.shell.text(&text, call.streams).await
}

/// Runs `env [NAME=VALUE...] [COMMAND [ARGUMENT...]]`.
pub(super) fn env(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let is_setting = |argument: &&String| argument.split_once('=').is_some_and(|(name, _)| is_name(name));
        let settings = call.arguments.iter().take_while(is_setting).count();
        let (settings, command) = call.arguments.split_at(settings);
        let outer = call.shell.copied_scope()?;
        for (name, value) in settings.iter().filter_map(|setting| setting.split_once('=')) {
            call.shell.pay(name.len() + value.len())?;
            call.shell.scope.set(name, value.to_owned());
            call.shell.scope.export(name);
        }
        let ended = match command.split_first() {
            None => show_environment(&mut call),
            Some((option, _)) if option.starts_with('-') => {
                call.fail(125, &format!("option {option} is not supported"))
            }
            Some((name, arguments)) => {
                let ended = call.shell.invoke(name, arguments, call.streams).await;
                ended.map(|()| call.shell.status)
            }
        };
        call.shell.scope = outer;
        ended
    })
}

/// Runs `command COMMAND [ARGUMENT...]`, and `command -v NAME`, which looks the command up.
pub(super) fn command(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        match call.arguments {
            [option, names @ ..] if option == "-v" => {
                let mut code = u8::from(names.is_empty());
                for name in names {
                    match find(name).is_some() || is_hook_tool(name) {
                        true => call.say(&format!("{name}\n"))?,
                        false => code = 1,
                    }
                }
                Ok(code)
            }
            [name, arguments @ ..] => {
                call.shell.invoke(name, arguments, call.streams).await?;
                Ok(call.shell.status)
            }
            [] => Ok(0),
        }
    })
}
