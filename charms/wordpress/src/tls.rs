//! The unit's certificate from an authority, and its key in a secret.

use crate::journal;
use periapt_sdk::{Relation, Result, Secret, Status, Unit};

/// The port of the site with TLS.
pub(crate) const PORT: u16 = 443;

/// An issued certificate with its key.
pub(crate) struct Tls {
    /// The beginning of the serial number.
    pub(crate) serial: String,
}

/// Requests a certificate if there is an authority, and returns the issued one. Returns `None` without an authority.
///
/// # Errors
///
/// The status that names the missing part.
pub(crate) fn converge(unit: &Unit) -> Result<Option<Tls>> {
    let Some(relation) = unit.relation("certificates") else { return Ok(None) };
    ask(unit, &relation)?;
    let given = relation.remote_app_bag()?;
    let key = |part: &str| format!("{}.server.{part}", unit.name().replace('/', "_"));
    if let Some(error) = given.get::<String>(&key("error"))? {
        return Err(Status::blocked(format!("no certificate: {error}")).into());
    }
    let (Some(certificate), Some(uri), Some(serial)) = (
        given.get::<String>(&key("cert"))?,
        given.get::<String>(&key("key-secret"))?,
        given.get(&key("serial"))?,
    ) else {
        return Err(Status::waiting("for a certificate").into());
    };
    // A new certificate comes with a new key, so the unit tracks the newest revision.
    let content = Secret::new(uri).refresh()?;
    let private_key = content.text("private-key")?;
    let tls = Tls { serial };
    if unit.state().get("certificate").as_ref() != Some(&tls.serial) {
        let size = certificate.len() + private_key.len();
        journal::tell(unit, &format!("took certificate {} and its key, {size} bytes", tls.serial))?;
        unit.state().set("certificate", &tls.serial)?;
    }
    Ok(Some(tls))
}

/// Requests a certificate for the unit's name and its address.
fn ask(unit: &Unit, relation: &Relation) -> Result {
    let address: Option<String> = relation.unit_bag().get("ingress-address")?;
    let sans = address.map_or_else(|| "[]".to_owned(), |address| format!("[\"{address}\"]"));
    relation.unit_bag().set_all([("common_name", unit.name().replace('/', "-")), ("sans", sans)])
}
