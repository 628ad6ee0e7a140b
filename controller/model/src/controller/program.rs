//! The program by which all controllers and agents replace themselves.

use periapt_host_api::{
    ErrorCode, Refusal, excerpt,
    program::{MAX_PROGRAM_BYTES, MAX_PROGRAM_TEXT, ProgramOffer, ProgramTarget},
};

use crate::{
    entity::EntityKey,
    root::{Root, changes::Changes},
};

/// Sets the program as the next target. Its file must have been uploaded.
///
/// # Errors
/// The file is unknown or too large, or the program cannot read what is stored.
pub(crate) fn set(root: &Root, offer: &ProgramOffer) -> Result<Changes, Refusal> {
    let not_started = || Refusal::new(ErrorCode::TryAgain, "the controller has not started yet");
    let mut controller = root.controller().ok_or_else(not_started)?.clone();
    let is_plain = |text: &str| {
        (1..=MAX_PROGRAM_TEXT).contains(&text.len()) && text.chars().all(|letter| letter.is_ascii_graphic())
    };
    for (what, text) in [("version", &offer.version), ("architecture", &offer.architecture)] {
        if !is_plain(text) {
            return Err(Refusal::bad_request(format!(
                "invalid {what} {:?} of a program: 1 to {MAX_PROGRAM_TEXT} printable letters without blanks are allowed",
                excerpt::shortened(text)
            )));
        }
    }
    if offer.level < root.level() {
        let text = format!(
            "the program knows level {} of what controllers store, and they store level {}: choose a newer program",
            offer.level,
            root.level()
        );
        return Err(Refusal::new(ErrorCode::NotSupported, text));
    }
    let unknown = || {
        Refusal::not_found(format!("program {} not found: upload its file first", offer.digest))
            .about(format!("program {}", offer.digest.short()))
    };
    let content = root.resource_content(&offer.digest).ok_or_else(unknown)?;
    if content.parts.is_some() {
        let text = format!("{} was uploaded as an image, and a program is a file", offer.digest);
        return Err(Refusal::bad_request(text));
    }
    let size = content.size;
    if size > MAX_PROGRAM_BYTES {
        let text = format!("the program has {size} bytes, and at most {MAX_PROGRAM_BYTES} are allowed");
        return Err(Refusal::bad_request(text));
    }
    let number = controller.program.as_ref().map_or(1, |before| before.number.saturating_add(1));
    controller.program = Some(ProgramTarget { offer: offer.clone(), size, number, released: false });
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::Controller, Some(controller.into()));
    Ok(changes)
}

/// Lets agents take the target of this number. Changes nothing if there is another one.
pub(crate) fn release(root: &Root, number: u64) -> Changes {
    let mut changes = Changes::default();
    let Some(mut controller) = root.controller().cloned() else { return changes };
    match &mut controller.program {
        Some(target) if target.number == number && !target.released => target.released = true,
        _ => return changes,
    }
    changes.puts.insert(EntityKey::Controller, Some(controller.into()));
    changes
}
