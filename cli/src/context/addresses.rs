//! The addresses of controllers that serve the same models, and the newest states that they showed: what the client's
//! files have of both, and what they learn.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use periapt_client::{Addresses, Client, ClientError, Seen};
use periapt_host_api::{
    api::{MAX_ADDRESSES, WatchPosition},
    command::ControllerInfo,
};
use tokio::time::timeout;

use crate::{
    data::{ClientData, ControllerEntry, ControllerName, DataDir, LastSeen},
    error::Result,
};

/// The longest time that a command which is done takes to read the list of controllers after a failover.
const REFRESHED_WITHIN: Duration = Duration::from_secs(1);

/// The clients of controllers on other hosts that a command has used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Used(Arc<Mutex<Vec<UsedController>>>);

#[derive(Debug)]
struct UsedController {
    name: ControllerName,
    client: Client,
    /// The URL that the client began at; none if it knows one alone.
    began_at: Option<String>,
    /// The position that the client began with.
    began_with: Option<WatchPosition>,
    /// The newest state that the client has seen.
    seen: Seen,
}

impl Used {
    /// Returns what commands have seen of a controller: in this process, or else before it.
    pub(super) fn seen(&self, data: &DataDir, name: &ControllerName) -> Seen {
        let used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = used.iter().find(|used| used.name == *name).map(|used| used.seen.clone());
        known.unwrap_or_else(|| Seen::starting_with(LastSeen::of(data, name)))
    }

    /// Adds a client that may go on to another controller.
    pub(super) fn add(
        &self,
        name: &ControllerName,
        entry: &ControllerEntry,
        client: &Client,
        seen: Seen,
    ) -> Result<()> {
        if entry.local.is_none() {
            let began_at = match entry.addresses.as_slice() {
                [] => None,
                _ => addresses_of(entry)?.urls().next(),
            };
            let (name, client, began_with) = (name.clone(), client.clone(), seen.position());
            let used = UsedController { name, client, began_at, began_with, seen };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(used);
        }
        Ok(())
    }

    /// Keeps what the command has seen, so that the next command is not shown less. Then reads the list of controllers
    /// again where another address answered than the one that the command began at, so that the next command begins
    /// there. A failure of either is no failure of the command, which is done.
    pub(crate) async fn remember(&self, data: &DataDir) {
        let used = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for UsedController { name, client, began_at, began_with, seen } in used {
            // A controller that is alone tells no position, and a state in which nothing was written is no newer one.
            if let Some(seen) = seen.position()
                && began_with != Some(seen)
                && let Err(error) = LastSeen::keep(data, &name, began_with, seen)
            {
                tracing::debug!(%error, "the newest state that the command saw is not kept");
            }
            if began_at.is_none() || client.urls().into_iter().next() == began_at {
                continue;
            }
            let refreshed = async {
                let info = client.controller().await?;
                remember(data, &name, &client, &info).await
            };
            match timeout(REFRESHED_WITHIN, refreshed).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "the controllers' addresses are not refreshed"),
                Err(_) => tracing::debug!("the controllers' addresses are not refreshed in time"),
            }
        }
    }
}

/// Returns the addresses of an entry, in the order of attempts. A URL that a user has changed in the file comes first.
pub(super) fn addresses_of(entry: &ControllerEntry) -> Result<Addresses> {
    let url = Addresses::try_from(&entry.url).map_err(ClientError::from)?;
    Ok(match Addresses::learned(&entry.addresses) {
        Some(known) if entry.addresses.contains(&entry.url) => known,
        Some(known) => url.with(&known),
        None => url,
    })
}

/// Records the list of controllers that a trusted one has sent, if it differs from that of the client's file: first the
/// address that answered.
pub(crate) async fn remember(
    data: &DataDir,
    name: &ControllerName,
    client: &Client,
    info: &ControllerInfo,
) -> Result<()> {
    let answered = client.urls().into_iter().next();
    let listed = |entry: &ControllerEntry| listed(info, answered.as_deref(), &entry.url);
    // Most commands change nothing, and do not wait for others that do.
    let differs = |known: &ClientData| {
        known.controllers.get(name).is_some_and(|entry| entry.addresses != listed(entry))
    };
    if !differs(&ClientData::read(data)?) {
        return Ok(());
    }
    ClientData::update(data, |known| {
        if let Some(entry) = known.controllers.get_mut(name) {
            entry.addresses = listed(entry);
        }
        Ok(())
    })
}

/// Returns the URLs of all controllers as the client's file keeps them: none for a controller that stands alone. The
/// entry's own URL stays among them, because it is known to work from here.
pub(crate) fn listed(info: &ControllerInfo, answered: Option<&str>, own: &str) -> Vec<String> {
    let Some(known) = Addresses::learned(&info.addresses) else { return Vec::new() };
    // On a controller's own host its socket has answered, which is no address of others.
    let answered = answered.filter(|url| url.starts_with("https://"));
    let mut urls: Vec<String> = Vec::new();
    let own = Addresses::try_from(own).ok().into_iter().flat_map(|own| own.urls().collect::<Vec<_>>());
    for url in answered.map(str::to_owned).into_iter().chain(known.urls()).chain(own) {
        if !urls.contains(&url) && urls.len() < MAX_ADDRESSES {
            urls.push(url);
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{Revision, StoreId};
    use uuid::Uuid;

    use super::*;

    fn info(addresses: &[&str]) -> ControllerInfo {
        ControllerInfo {
            name: "home".into(),
            uuid: Uuid::nil(),
            version: String::new(),
            engine: String::new(),
            store: StoreId(Uuid::nil()),
            revision: Revision(1),
            writable: true,
            problem: None,
            stale: false,
            level: periapt_host_api::LEVEL,
            blobs: None,
            members: Vec::new(),
            log: None,
            failing_workers: Vec::new(),
            program: None,
            target: None,
            addresses: addresses.iter().map(|url| (*url).to_owned()).collect(),
        }
    }

    #[test]
    fn the_address_that_answered_comes_first_and_the_entrys_own_stays() {
        let info = info(&["https://a:1", "https://b:1", "ftp://c"]);
        let urls = |answered| listed(&info, answered, "https://10.0.0.1:1/");
        assert_eq!(urls(Some("https://b:1")), ["https://b:1", "https://a:1", "https://10.0.0.1:1"]);
        assert_eq!(urls(Some("unix:///run/x")), ["https://a:1", "https://b:1", "https://10.0.0.1:1"]);
        assert_eq!(urls(None), ["https://a:1", "https://b:1", "https://10.0.0.1:1"]);
    }

    #[test]
    fn a_controller_that_stands_alone_is_known_by_its_url() {
        for addresses in [&[][..], &["https://a:1"], &["https://a:1", "http://127.0.0.1:1"]] {
            assert!(listed(&info(addresses), Some("https://a:1"), "https://a:1").is_empty(), "{addresses:?}");
        }
    }

    /// Writes an entry of a controller into the client's file, and returns it.
    fn entered(directory: &tempfile::TempDir) -> (DataDir, ControllerName, ControllerEntry) {
        let data = DataDir::at(directory.path());
        let name: ControllerName = "home".parse().unwrap();
        let authority = periapt_transport::Authority::generate().unwrap();
        let entry = ControllerEntry {
            url: "https://a:1".into(),
            addresses: Vec::new(),
            ca_cert: Some(authority.certificate().to_owned()),
            uuid: Uuid::nil(),
            current_model: None,
            local: None,
        };
        ClientData::update(&data, |known| {
            known.controllers.insert(name.clone(), entry.clone());
            Ok(())
        })
        .unwrap();
        (data, name, entry)
    }

    fn position(revision: u64) -> Option<WatchPosition> {
        Some(WatchPosition { store: StoreId(Uuid::nil()), revision: Revision(revision) })
    }

    #[tokio::test]
    async fn clients_of_one_command_share_what_they_see_and_it_is_kept_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let (data, name, entry) = entered(&directory);
        let client =
            crate::context::client_as(&data, &name, &entry, periapt_client::Identity::Local).unwrap();
        // Nothing was seen, or nothing newer: nothing is written.
        for seen in [None, position(7)] {
            let used = Used::default();
            used.add(&name, &entry, &client, Seen::starting_with(seen)).unwrap();
            used.remember(&data).await;
            assert!(!data.seen_file().exists());
        }
        let (used, seen) = (Used::default(), Seen::starting_with(position(8)));
        let newer = UsedController { name: name.clone(), client, began_at: None, began_with: None, seen };
        used.0.lock().unwrap().push(newer);
        assert_eq!(used.seen(&data, &name).position(), position(8), "before it is in the file");
        used.remember(&data).await;
        assert_eq!(LastSeen::of(&data, &name), position(8));
        assert_eq!(
            Used::default().seen(&data, &name).position(),
            position(8),
            "the next command begins there"
        );
    }

    #[tokio::test]
    async fn a_list_is_written_down_once_and_read_as_the_order_of_attempts() {
        let directory = tempfile::tempdir().unwrap();
        let (data, name, entry) = entered(&directory);
        let client =
            crate::context::client_as(&data, &name, &entry, periapt_client::Identity::Local).unwrap();
        let info = info(&["https://b:1", "https://a:1"]);
        remember(&data, &name, &client, &info).await.unwrap();
        let known = ClientData::read(&data).unwrap().controllers.remove(&name).unwrap();
        assert_eq!(addresses_of(&known).unwrap().to_string(), "https://a:1,https://b:1");
        let changed = ControllerEntry { url: "https://c:1".into(), ..known };
        assert_eq!(addresses_of(&changed).unwrap().to_string(), "https://c:1,https://a:1,https://b:1");
        let written = std::fs::metadata(data.client_file()).unwrap().modified().unwrap();
        remember(&data, &name, &client, &info).await.unwrap();
        assert_eq!(std::fs::metadata(data.client_file()).unwrap().modified().unwrap(), written);
    }
}
