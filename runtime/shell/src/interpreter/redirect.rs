//! Redirections. A file is made, or emptied, before the command runs. Output is buffered and written after the
//! command.

use super::{FileFault, Input, Output, Shell, Streams, Unwind};
use crate::{
    FileCall,
    syntax::{Append, Redirection, Streams as Which},
};

/// A command's streams, and the files to handle when it ends.
pub(super) struct Redirected {
    pub(super) streams: Streams,
    /// The files to write, with their buffers.
    files: Vec<(String, u64)>,
    /// The buffers of files to read.
    read: Vec<u64>,
}

impl Shell {
    /// Opens the files of a command's redirections. None after an error, which it has written.
    pub(super) async fn redirect(
        &mut self,
        redirections: &[Redirection],
        outer: Streams,
    ) -> Result<Option<Redirected>, Unwind> {
        let mut redirected = Redirected { streams: outer, files: Vec::new(), read: Vec::new() };
        for redirection in redirections {
            self.step().await?;
            let streams = &mut redirected.streams;
            match redirection {
                Redirection::Join { from, to } => {
                    let target = if *to == Which::Error { streams.stderr } else { streams.stdout };
                    direct(streams, *from, target);
                }
                Redirection::Read(word) => {
                    let path = self.joined(word, outer).await?;
                    if path == "/dev/null" {
                        streams.stdin = Input::Nothing;
                        continue;
                    }
                    match self.read_file(&path).await? {
                        Ok(content) => {
                            let buffer = self.buffers.open(content);
                            redirected.read.push(buffer);
                            redirected.streams.stdin = Input::Buffer(buffer);
                        }
                        Err(fault) => return self.not_redirected(redirected, &path, fault, outer),
                    }
                }
                Redirection::Write { streams: which, file, append } => {
                    let path = self.joined(file, outer).await?;
                    let device = match path.as_str() {
                        "/dev/null" => Some(Output::Nothing),
                        "/dev/stdout" => Some(redirected.streams.stdout),
                        "/dev/stderr" => Some(redirected.streams.stderr),
                        _ => None,
                    };
                    if let Some(device) = device {
                        direct(&mut redirected.streams, *which, device);
                        continue;
                    }
                    let full = self.path(&path);
                    let append = *append == Append::Yes;
                    let call = FileCall::Write { path: full.clone(), content: Vec::new(), append };
                    if let Err(fault) = self.file(call).await? {
                        return self.not_redirected(redirected, &path, fault, outer);
                    }
                    let buffer = self.buffers.open(Vec::new());
                    redirected.files.push((full, buffer));
                    direct(&mut redirected.streams, *which, Output::Buffer(buffer));
                }
            }
        }
        Ok(Some(redirected))
    }

    fn not_redirected(
        &mut self,
        redirected: Redirected,
        path: &str,
        fault: FileFault,
        outer: Streams,
    ) -> Result<Option<Redirected>, Unwind> {
        let Redirected { files, read, .. } = redirected;
        for buffer in files.into_iter().map(|(_, buffer)| buffer).chain(read) {
            self.buffers.close(buffer);
        }
        self.write(outer.stderr, format!("{path}: {fault}\n").as_bytes())?;
        Ok(None)
    }

    /// Writes the files of a command that has ended.
    pub(super) async fn restore(&mut self, redirected: Redirected, outer: Streams) -> Result<(), Unwind> {
        for buffer in redirected.read {
            self.buffers.close(buffer);
        }
        for (path, buffer) in redirected.files {
            let content = self.buffers.close(buffer);
            if content.is_empty() {
                continue;
            }
            let call = FileCall::Write { path: path.clone(), content, append: true };
            if let Err(error) = self.file(call).await? {
                self.status = 1;
                self.write(outer.stderr, format!("{path}: {error}\n").as_bytes())?;
            }
        }
        Ok(())
    }
}

fn direct(streams: &mut Streams, which: Which, target: Output) {
    if which != Which::Error {
        streams.stdout = target;
    }
    if which != Which::Output {
        streams.stderr = target;
    }
}
