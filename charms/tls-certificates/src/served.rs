//! What one unit that asks is given: its certificate in the application's bag, its key in a secret that it alone reads.

use crate::authority::Authority;
use crate::request::Request;
use crate::settings::Settings;
use crate::vault;
use periapt_sdk::{Relation, Result, Unit};

/// Which certificates are made anew although they are there.
#[derive(Clone, Copy)]
pub(crate) enum Renew<'a> {
    /// None.
    Missing,
    /// That of a unit.
    Unit(&'a str),
    /// That whose key is in a secret, by its URI.
    Key(&'a str),
    /// All of them.
    All,
}

/// A unit that asks, in one relation.
pub(crate) struct Served<'a> {
    relation: &'a Relation,
    unit: &'a str,
}

/// What the bag holds of a unit; each key begins with the unit's name.
const PARTS: [&str; 5] = ["cert", "key-secret", "names", "serial", "error"];

impl<'a> Served<'a> {
    pub(crate) fn of(relation: &'a Relation, unit: &'a str) -> Self {
        Self { relation, unit }
    }

    pub(crate) fn has_certificate(&self) -> Result<bool> {
        Ok(self.part("cert")?.is_some())
    }

    /// Gives the unit what it asks for now; answers the serial number of its certificate if that is a new one.
    pub(crate) fn serve(
        &self,
        unit: &Unit,
        authority: &Authority,
        settings: &Settings,
        renew: Renew<'_>,
    ) -> Result<Option<String>> {
        let request = match Request::of(&self.relation.member_bag(self.unit)) {
            Ok(Some(request)) => request,
            Ok(None) => return self.clear().map(|()| None),
            // Another's mistake is not this unit's error: who asked is told.
            Err(error) => {
                self.clear()?;
                self.relation.app_bag().set(&self.key("error"), error)?;
                return Ok(None);
            }
        };
        let key = self.part("key-secret")?;
        let named = self.part("names")? == Some(request.text());
        let again = match renew {
            Renew::Missing => false,
            Renew::Unit(name) => name == self.unit,
            Renew::Key(uri) => vault::is_same(key.as_deref(), uri),
            Renew::All => true,
        };
        if named && !again {
            return Ok(None);
        }
        let issued = authority.issue(&request, settings.lifetime)?;
        let uri = match key {
            Some(uri) => {
                vault::replace_key(&uri, &issued.private_key, settings.renew_after())?;
                uri
            }
            None => {
                vault::add_key(unit, self.relation, self.unit, &issued.private_key, settings.renew_after())?
            }
        };
        self.relation.app_bag().set_all([
            (self.key("cert"), issued.certificate),
            (self.key("key-secret"), uri),
            (self.key("names"), request.text()),
            (self.key("serial"), issued.serial.clone()),
            (self.key("error"), String::new()),
        ])?;
        Ok(Some(issued.serial))
    }

    /// Takes back what the unit has been given.
    pub(crate) fn clear(&self) -> Result {
        if let Some(uri) = self.part("key-secret")? {
            vault::remove_key(&uri)?;
        }
        self.relation.app_bag().set_all(PARTS.map(|part| (self.key(part), "")))
    }

    fn part(&self, part: &str) -> Result<Option<String>> {
        self.relation.app_bag().get(&self.key(part))
    }

    /// As charms of this interface have always written it: `blog_0.server.cert`.
    fn key(&self, part: &str) -> String {
        format!("{}.server.{part}", self.unit.replace('/', "_"))
    }
}
