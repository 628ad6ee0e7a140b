//! The file of a layer's table, in a form of its own.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Write as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{
    error::ImageError,
    table::{LayerEntry, LayerTable},
};

/// The version of the form. Tables of other versions are not read, and their layers are unpacked again.
const FORM: u32 = 1;

#[derive(Deserialize)]
struct Kept {
    form: u32,
    entries: std::collections::BTreeMap<String, LayerEntry>,
}

#[derive(Serialize)]
struct Written<'a> {
    form: u32,
    entries: &'a std::collections::BTreeMap<String, LayerEntry>,
}

/// Reads a table. `None` means that there is none in this form.
pub(super) fn read(path: &Path) -> Result<Option<LayerTable>, ImageError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ImageError::read(path)(error)),
    };
    match serde_json::from_reader::<_, Kept>(BufReader::new(file)) {
        Ok(kept) if kept.form == FORM => Ok(Some(LayerTable { entries: kept.entries })),
        Err(error) if error.is_io() => Err(ImageError::read(path)(error.into())),
        _ => Ok(None),
    }
}

/// Writes a table.
pub(super) fn write(path: &Path, table: &LayerTable) -> Result<(), ImageError> {
    let failed = || ImageError::write(path);
    let mut writer = BufWriter::new(File::create_new(path).map_err(failed())?);
    let written = Written { form: FORM, entries: &table.entries };
    serde_json::to_writer(&mut writer, &written).map_err(|error| failed()(error.into()))?;
    writer.flush().map_err(failed())
}
