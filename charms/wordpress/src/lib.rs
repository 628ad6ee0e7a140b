//! A blog: it checks all that it needs at each event, and serves once everything is there.

mod database;
mod journal;
mod posts;
mod settings;
mod site;
mod tls;

use database::Database;
use periapt_sdk::{
    ActionEvent, Charm, Error, Event, Ports, Relation, RelationBroken, Result, Status, Unit, info,
};
use settings::Settings;
use site::Site;
use tls::Tls;

periapt_sdk::export!(Wordpress);

#[derive(Default)]
struct Wordpress;

impl Charm for Wordpress {
    fn install(&mut self, unit: &Unit) -> Result {
        unit.set_version("6.8")?;
        unit.set_status(&Status::maintenance("preparing the web server"))
    }

    fn relation_broken(&mut self, unit: &Unit, event: &RelationBroken) -> Result {
        if event.relation.endpoint() == "db" {
            info!("the database of {} is gone", event.app);
        }
        converge(unit)
    }

    fn stop(&mut self, unit: &Unit) -> Result {
        unit.set_ports([])
    }

    fn remove(&mut self, unit: &Unit) -> Result {
        info!("{} is gone", unit.name());
        Ok(())
    }

    fn action(&mut self, unit: &Unit, event: &ActionEvent) -> Result {
        match event.name.as_str() {
            "publish" => posts::publish(unit, event),
            "retract" => posts::retract(unit, event),
            "posts" => posts::list(unit, event),
            other => Err(Error::new(format!("there is no action {other}"))),
        }
    }

    fn otherwise(&mut self, unit: &Unit, _: &Event) -> Result {
        converge(unit)
    }
}

/// Serves if everything is there. Otherwise closes the port and sets a status that names the missing part.
fn converge(unit: &Unit) -> Result {
    journal::publish(unit)?;
    if unit.is_leader()? {
        posts::mirror(unit)?;
    }
    match gather(unit) {
        Ok((site, tls, peers)) => serve(unit, &site, tls.as_ref(), &peers),
        Err(error) => {
            if error.status().is_some() {
                withdraw(unit)?;
            }
            Err(error)
        }
    }
}

/// Returns everything that the site needs, or the status that names the missing part.
fn gather(unit: &Unit) -> Result<(Site, Option<Tls>, Relation)> {
    let settings: Settings = unit.config().map_err(|error| Status::blocked(error.to_string()))?;
    let db = unit.relation("db").ok_or(Status::blocked("needs a database: integrate with mysql"))?;
    let database = Database::given_by(&db)?.ok_or(Status::waiting("for the database"))?;
    let peers = unit.relation("loadbalancer").ok_or(Status::waiting("for the peer relation"))?;
    let salt = site::salt(unit, &peers)?.ok_or(Status::waiting("for the leader's salt"))?;
    Ok((Site { settings, database, salt }, tls::converge(unit)?, peers))
}

fn serve(unit: &Unit, site: &Site, tls: Option<&Tls>, peers: &Relation) -> Result {
    let port = site.settings.port;
    let digest = site.digest();
    let before = peers.unit_bag().get::<String>("config-digest")?;
    if before.as_ref() != Some(&digest) {
        journal::tell(unit, &format!("rendered wp-config.php, sha256 {digest}"))?;
    }
    peers.unit_bag().set_all([("config-digest", digest), ("port", port.to_string())])?;
    unit.set_ports([Ports::tcp(port)].into_iter().chain(tls.map(|_| Ports::tcp(tls::PORT))))?;
    for website in unit.relations("website") {
        let hostname = hostname(unit, &website)?;
        website.unit_bag().set_all([("hostname", hostname), ("port", port.to_string())])?;
    }
    let units = peers.members()?.len() + 1;
    let plural = if units == 1 { "" } else { "s" };
    let title = &site.settings.title;
    let mut message = format!("serving \"{title}\" on port {port}, {units} unit{plural}");
    if let Some(tls) = tls {
        message += &format!(", certificate {}", tls.serial);
    }
    unit.set_status(&Status::active(message))
}

/// Withdraws this unit from the load balancers and closes its ports.
fn withdraw(unit: &Unit) -> Result {
    unit.set_ports([])?;
    for website in unit.relations("website") {
        website.unit_bag().set_all([("hostname", ""), ("port", "")])?;
    }
    Ok(())
}

/// Returns the address in the relation's bag, or the unit's name until there is one.
fn hostname(unit: &Unit, website: &Relation) -> Result<String> {
    let ingress = website.unit_bag().get("ingress-address")?;
    Ok(ingress.or_else(|| unit.address().ok()).unwrap_or_else(|| unit.name()))
}

#[cfg(test)]
mod tests;
