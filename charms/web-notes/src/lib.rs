//! A charm with a WebAssembly workload that keeps what it is given: notes, in its unit's storage.

use std::io::{Read, Write};

use periapt_sdk::{
    ActionEvent, Charm, Context as _, Error, RelationCreated, Result, Status, Unit, WorkloadEvent,
};

periapt_sdk::export!(WebNotes);

/// The port that the metadata declares for the server.
const PORT: u16 = 8080;

/// The most bytes of a note. The server refuses longer ones, too.
const LONGEST: usize = 4 << 10;

#[derive(Default)]
struct WebNotes;

impl Charm for WebNotes {
    fn start(&mut self, unit: &Unit) -> Result {
        unit.open(PORT)
    }

    fn relation_created(&mut self, _: &Unit, event: &RelationCreated) -> Result {
        event.relation.unit_bag().set("port", PORT)
    }

    fn pebble_ready(&mut self, unit: &Unit, _: &WorkloadEvent) -> Result {
        report(unit)
    }

    fn update_status(&mut self, unit: &Unit) -> Result {
        report(unit)
    }

    fn action(&mut self, unit: &Unit, event: &ActionEvent) -> Result {
        match event.name.as_str() {
            "add" => {
                let text: String = event.param("text")?;
                add(unit, &text)?;
                report(unit)
            }
            "list" => event.set("notes", notes(unit)?),
            other => Err(Error::new(format!("there is no action {other:?}"))),
        }
    }
}

/// Gives the server a note.
fn add(unit: &Unit, text: &str) -> Result {
    if text.len() > LONGEST {
        return Err(Error::new(format!("the note has {} bytes, and {LONGEST} at most are kept", text.len())));
    }
    let mut stream = unit.workload_port(PORT).context("adding a note")?;
    let request = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    let mut answer = String::new();
    let asked = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    asked.map_err(|error| Error::new(format!("adding a note: {error}")))?;
    match answer.split(' ').nth(1) {
        Some("201") => Ok(()),
        _ => Err(Error::new(format!(
            "the server refuses the note: {}",
            answer.lines().last().unwrap_or_default()
        ))),
    }
}

/// Returns the notes, a line each.
fn notes(unit: &Unit) -> Result<String> {
    let page = unit.workload_page(PORT, "/").context("listing the notes")?;
    match page.is_success() {
        true => Ok(page.text()),
        false => Err(Error::new(format!("the server answers with status {}", page.status))),
    }
}

/// Sets the status by what the server answers.
fn report(unit: &Unit) -> Result {
    let status = match notes(unit) {
        Ok(notes) => Status::active(format!("notes: {}", notes.lines().count())),
        Err(error) => Status::waiting(error.to_string()),
    };
    unit.set_status(&status)
}

#[cfg(test)]
mod tests;
