//! A certificate authority. The leader generates keys and certificates for the units that request them, keeps its own
//! key and theirs in secrets, and replaces all of them in time.

mod authority;
mod request;
mod served;
mod settings;
mod vault;

use authority::Authority;
use periapt_sdk::{
    ActionEvent, Charm, Error, Event, RelationDeparted, Result, SecretEvent, SecretRevisionEvent, Status,
    Unit, info,
};
use served::{Renew, Served};
use settings::Settings;

periapt_sdk::export!(TlsCertificates);

#[derive(Default)]
struct TlsCertificates;

impl Charm for TlsCertificates {
    fn config_changed(&mut self, unit: &Unit) -> Result {
        let settings = settings(unit)?;
        if unit.is_leader()? {
            vault::set_rotation(unit, settings.rotation)?;
        }
        converge(unit, Renew::Missing).map(drop)
    }

    fn relation_departed(&mut self, unit: &Unit, event: &RelationDeparted) -> Result {
        // If this unit is the one that leaves, the requesting unit stays, and another unit will lead.
        if unit.is_leader()? && event.departing != unit.name() {
            Served::of(&event.relation, &event.unit).clear()?;
        }
        converge(unit, Renew::Missing).map(drop)
    }

    /// Rotates the authority; no other secret is rotated.
    fn secret_rotate(&mut self, unit: &Unit, _: &SecretEvent) -> Result {
        rotate(unit).map(drop)
    }

    fn secret_expired(&mut self, unit: &Unit, event: &SecretRevisionEvent) -> Result {
        converge(unit, Renew::Key(&event.uri)).map(drop)
    }

    fn secret_remove(&mut self, unit: &Unit, event: &SecretRevisionEvent) -> Result {
        vault::remove_revision(&event.uri, event.revision)?;
        let removed = removed(unit) + 1;
        unit.state().set("removed", removed.to_string())?;
        converge(unit, Renew::Missing).map(drop)
    }

    fn action(&mut self, unit: &Unit, event: &ActionEvent) -> Result {
        if !unit.is_leader()? {
            return Err(Error::new(format!("only the leader does this: run it on {}/leader", unit.app())));
        }
        let of: Option<String> = match event.name.as_str() {
            "renew" => event.param("unit")?,
            "rotate-authority" => None,
            "show-authority" => {
                let authority = vault::authority(unit)?.ok_or_else(|| Error::new("there is none yet"))?;
                return event.set("certificate", authority.certificate_pem()?);
            }
            other => return Err(Error::new(format!("there is no action {other}"))),
        };
        let made = match (&of, event.name.as_str()) {
            (_, "rotate-authority") => rotate(unit)?,
            (Some(of), _) => converge(unit, Renew::Unit(of))?,
            (None, _) => converge(unit, Renew::All)?,
        };
        if made.is_empty() {
            event.fail("there is no such certificate")?;
        }
        event.set_all(made.into_iter().map(|(of, serial)| (of.replace('/', "-"), serial)))
    }

    fn otherwise(&mut self, unit: &Unit, _: &Event) -> Result {
        converge(unit, Renew::Missing).map(drop)
    }
}

/// Creates a new authority, and with it new certificates for all units.
fn rotate(unit: &Unit) -> Result<Vec<(String, String)>> {
    let authority = Authority::generate(&name(unit))?;
    vault::replace_authority(unit, &authority)?;
    info!("made a new authority, {}", authority.short_serial());
    converge(unit, Renew::All)
}

/// Creates missing certificates, and those to renew; leader only. Returns the units with a new certificate, and its
/// serial number.
fn converge(unit: &Unit, renew: Renew<'_>) -> Result<Vec<(String, String)>> {
    let settings = settings(unit)?;
    if !unit.is_leader()? {
        unit.set_status(&Status::active("another unit is the authority"))?;
        return Ok(Vec::new());
    }
    let authority = match vault::authority(unit)? {
        Some(authority) => authority,
        None => {
            let authority = Authority::generate(&name(unit))?;
            vault::add_authority(unit, &authority, settings.rotation)?;
            info!("made the authority, {}", authority.short_serial());
            authority
        }
    };
    let (mut made, mut count) = (Vec::new(), 0);
    for relation in unit.relations("certificates") {
        relation.app_bag().set("ca", authority.certificate_pem()?)?;
        for member in relation.members()? {
            let served = Served::of(&relation, &member);
            if let Some(serial) = served.serve(unit, &authority, &settings, renew)? {
                info!("{member} has certificate {serial}");
                made.push((member.clone(), serial));
            }
            count += usize::from(served.has_certificate()?);
        }
    }
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let mut message = format!("authority {}, {count} certificate{}", authority.short_serial(), plural(count));
    let removed = removed(unit);
    if removed > 0 {
        message += &format!(", {removed} old key{} removed", plural(removed));
    }
    unit.set_status(&Status::active(message))?;
    Ok(made)
}

fn settings(unit: &Unit) -> Result<Settings> {
    unit.config().map_err(|error| Status::blocked(error.to_string()).into())
}

/// Returns the authority's name in certificates.
fn name(unit: &Unit) -> String {
    format!("{}-{}", unit.model(), unit.app())
}

/// Returns the number of key revisions that were removed because no unit reads them any more.
fn removed(unit: &Unit) -> usize {
    unit.state().get("removed").and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
