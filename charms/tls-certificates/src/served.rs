//! The results for one requesting unit: its certificate in the application's bag, and its key in a secret that only
//! this unit reads.

use crate::authority::Authority;
use crate::request::Request;
use crate::settings::Settings;
use crate::vault;
use periapt_sdk::{Relation, Result, Unit};

/// The existing certificates to renew.
#[derive(Clone, Copy)]
pub(crate) enum Renew<'a> {
    /// No existing certificate.
    Missing,
    /// The certificate of a unit.
    Unit(&'a str),
    /// The certificate whose key is in the secret with this URI.
    Key(&'a str),
    /// All certificates.
    All,
}

/// A requesting unit, in one relation.
pub(crate) struct Served<'a> {
    relation: &'a Relation,
    unit: &'a str,
}

/// The parts of a unit's results in the bag; each key begins with the unit's name.
const PARTS: [&str; 5] = ["cert", "key-secret", "names", "serial", "error"];

impl<'a> Served<'a> {
    pub(crate) fn of(relation: &'a Relation, unit: &'a str) -> Self {
        Self { relation, unit }
    }

    pub(crate) fn has_certificate(&self) -> Result<bool> {
        Ok(self.part("cert")?.is_some())
    }

    /// Fulfils the unit's present request. Returns the serial number of a new certificate.
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
            // An invalid request is the requesting unit's error: the bag reports it.
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

    /// Removes the unit's certificate and key.
    pub(crate) fn clear(&self) -> Result {
        if let Some(uri) = self.part("key-secret")? {
            vault::remove_key(&uri)?;
        }
        self.relation.app_bag().set_all(PARTS.map(|part| (self.key(part), "")))
    }

    fn part(&self, part: &str) -> Result<Option<String>> {
        self.relation.app_bag().get(&self.key(part))
    }

    /// Returns the key in the form of this interface: `blog_0.server.cert`.
    fn key(&self, part: &str) -> String {
        format!("{}.server.{part}", self.unit.replace('/', "_"))
    }
}
