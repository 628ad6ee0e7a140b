//! The certificate that a unit asks an authority for, and the key that comes with it in a secret.

use crate::journal;
use periapt_sdk::{Relation, Result, Secret, Status, Unit};

/// The port that the site is served on for those who want to know whom they talk to.
pub(crate) const PORT: u16 = 443;

/// A certificate that has been given, with its key.
pub(crate) struct Tls {
    /// The beginning of its serial number.
    pub(crate) serial: String,
}

/// Asks for a certificate where there is an authority, and answers the one that was given; `None` without an authority.
///
/// # Errors
///
/// The status that says what is waited for.
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
    // A new certificate comes with a new key: the newest revision, from now on.
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

/// The unit's name, and the address that others reach it by.
fn ask(unit: &Unit, relation: &Relation) -> Result {
    let address: Option<String> = relation.unit_bag().get("ingress-address")?;
    let sans = address.map_or_else(|| "[]".to_owned(), |address| format!("[\"{address}\"]"));
    relation.unit_bag().set_all([("common_name", unit.name().replace('/', "-")), ("sans", sans)])
}
