//! `ls`, `mkdir`, `rm`, `touch` and `tee`.

use periapt_hook::FileError;

use super::call::{Call, Parsed};
use crate::{
    FileCall, FileKind,
    interpreter::{FileFault, Step, Unwind},
};

/// Runs `ls [-a] [-d] [-1] [PATH...]`, with one name on each line, as GNU's does without a
/// terminal.
pub(super) fn ls(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(mut parsed) = call.options("1adA", "")? else { return Ok(2) };
        if parsed.operands.is_empty() {
            parsed.operands.push(".".to_owned());
        }
        let (mut code, mut directories) = (0, Vec::new());
        for path in parsed.operands.clone() {
            call.shell.step().await?;
            match call.shell.kind(&path).await? {
                Ok(FileKind::Directory) if !parsed.has('d') => directories.push(path),
                Ok(_) => call.say(&format!("{path}\n"))?,
                Err(error) => code = call.fail(2, &format!("cannot access '{path}': {error}"))?,
            }
        }
        for (index, path) in directories.iter().enumerate() {
            if parsed.operands.len() > 1 {
                let gap = if index > 0 || parsed.operands.len() > directories.len() { "\n" } else { "" };
                call.say(&format!("{gap}{path}:\n"))?;
            }
            if let Err(error) = list(&mut call, path, &parsed).await? {
                code = call.fail(2, &format!("cannot open directory '{path}': {error}"))?;
            }
        }
        Ok(code)
    })
}

async fn list(call: &mut Call<'_>, path: &str, parsed: &Parsed) -> Result<Result<(), FileFault>, Unwind> {
    let names = match call.shell.list_directory(call.shell.path(path)).await? {
        Ok(names) => names,
        Err(error) => return Ok(Err(error)),
    };
    if parsed.has('a') {
        call.say(".\n..\n")?;
    }
    for (name, _) in names {
        if !name.starts_with('.') || parsed.has('a') || parsed.has('A') {
            call.say(&format!("{name}\n"))?;
        }
    }
    Ok(Ok(()))
}

/// Runs `mkdir [-p] DIRECTORY...`.
pub(super) fn mkdir(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(parsed) = call.options("p", "")? else { return Ok(1) };
        let mut code = if parsed.operands.is_empty() { call.fail(1, "missing operand")? } else { 0 };
        for path in &parsed.operands {
            let full = call.shell.path(path);
            let made = match parsed.has('p') {
                true => make_all(&mut call, &full).await?,
                false => make(&mut call, full).await?,
            };
            if let Err(error) = made {
                code = call.fail(1, &format!("cannot create directory ‘{path}’: {error}"))?;
            }
        }
        Ok(code)
    })
}

async fn make(call: &mut Call<'_>, path: String) -> Result<Result<(), FileFault>, Unwind> {
    call.shell.step().await?;
    Ok(call.shell.file(FileCall::MakeDirectory { path }).await?.map(drop))
}

/// Makes a directory and its missing parents.
async fn make_all(call: &mut Call<'_>, path: &str) -> Result<Result<(), FileFault>, Unwind> {
    let ends = path.match_indices('/').skip(1).map(|(at, _)| at).chain([path.len()]);
    for end in ends {
        let above = path.get(..end).unwrap_or_default();
        call.shell.step().await?;
        call.shell.pay(above.len())?;
        match call.shell.kind(above).await? {
            Ok(FileKind::Directory) => {}
            Ok(FileKind::File) => return Ok(Err(FileFault(FileError::NotDirectory))),
            Err(_) => {
                if let Err(error) = make(call, above.to_owned()).await? {
                    return Ok(Err(error));
                }
            }
        }
    }
    Ok(Ok(()))
}

/// Runs `rm [-f] [-r] PATH...`.
pub(super) fn rm(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(parsed) = call.options("frR", "")? else { return Ok(1) };
        let force = parsed.has('f');
        let nothing = parsed.operands.is_empty() && !force;
        let mut code = if nothing { call.fail(1, "missing operand")? } else { 0 };
        for path in &parsed.operands {
            call.shell.step().await?;
            let removed = match call.shell.kind(path).await? {
                Err(_) if force => continue,
                Err(error) => Err(error),
                Ok(FileKind::Directory) if !parsed.has('r') && !parsed.has('R') => {
                    Err(FileFault(FileError::Directory))
                }
                Ok(kind) => remove_all(&mut call, path, kind).await?,
            };
            if let Err(error) = removed {
                code = call.fail(1, &format!("cannot remove '{path}': {error}"))?;
            }
        }
        Ok(code)
    })
}

/// Removes a directory's content, then the directory itself.
async fn remove_all(
    call: &mut Call<'_>,
    path: &str,
    kind: FileKind,
) -> Result<Result<(), FileFault>, Unwind> {
    let path = call.shell.path(path);
    let mut waiting = vec![(path, kind, false)];
    while let Some((path, kind, emptied)) = waiting.pop() {
        call.shell.step().await?;
        let directory = kind == FileKind::Directory;
        if directory && !emptied {
            let names = match call.shell.list_directory(path.clone()).await? {
                Ok(names) => names,
                Err(error) => return Ok(Err(error)),
            };
            waiting.push((path.clone(), kind, true));
            for (name, kind) in names {
                call.shell.pay(path.len() + name.len() + 64)?;
                waiting.push((format!("{path}/{name}"), kind, false));
            }
            continue;
        }
        if let Err(error) = call.shell.file(FileCall::Remove { path, directory }).await? {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// Runs `touch FILE...`.
pub(super) fn touch(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(parsed) = call.options("", "")? else { return Ok(1) };
        let mut code = if parsed.operands.is_empty() { call.fail(1, "missing file operand")? } else { 0 };
        for path in &parsed.operands {
            call.shell.step().await?;
            if matches!(call.shell.kind(path).await?, Ok(FileKind::Directory)) {
                continue;
            }
            let write = FileCall::Write { path: call.shell.path(path), content: Vec::new(), append: true };
            if let Err(error) = call.shell.file(write).await? {
                code = call.fail(1, &format!("cannot touch '{path}': {error}"))?;
            }
        }
        Ok(code)
    })
}

/// Runs `tee [-a] [FILE...]`.
pub(super) fn tee(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(parsed) = call.options("a", "")? else { return Ok(1) };
        let content = call.shell.read_all(call.streams.stdin)?;
        call.shell.write(call.streams.stdout, &content)?;
        let mut code = 0;
        for path in parsed.operands.iter().filter(|path| *path != "/dev/null") {
            call.shell.step().await?;
            call.shell.pay(content.len())?;
            let (full, append) = (call.shell.path(path), parsed.has('a'));
            let write = FileCall::Write { path: full, content: content.clone(), append };
            if let Err(error) = call.shell.file(write).await? {
                code = call.fail(1, &format!("{path}: {error}"))?;
            }
        }
        Ok(code)
    })
}
