//! The tables of storage, as Juju draws them.

use periapt_host_api::{status::CombinedStorage, storage::mebibytes};

use crate::output::{Table, style_of_status};

/// Draws the table of `storage`, and of `status --storage`.
pub(crate) fn tabular(storage: &CombinedStorage) -> Table {
    let mut table = Table::new(["Unit", "Storage ID", "Type", "Pool", "Size", "Status", "Message"]);
    for (id, info) in &storage.storage {
        let place = storage.filesystems.values().find(|place| place.storage == *id);
        let units = info.attachments.iter().flat_map(|attachments| attachments.units.keys());
        let unit = units.cloned().collect::<Vec<_>>().join(",");
        table.row([
            unit.into(),
            id.clone().into(),
            info.kind.clone().into(),
            place.map(|place| place.pool.clone()).unwrap_or_default().into(),
            place.map(|place| mebibytes(place.size)).unwrap_or_default().into(),
            (info.status.current.as_str(), style_of_status(&info.status.current)).into(),
            info.status.message.clone().into(),
        ]);
    }
    table
}

/// Draws the table of `storage --filesystem`.
pub(crate) fn filesystems(storage: &CombinedStorage) -> Table {
    let heading =
        ["Machine", "Unit", "Storage ID", "ID", "Provider ID", "Mountpoint", "Size", "State", "Message"];
    let mut table = Table::new(heading);
    for (id, place) in &storage.filesystems {
        let attachments = place.attachments.as_ref();
        let (machine, mounted) = attachments.and_then(|at| at.machines.first_key_value()).unzip();
        let unit = attachments.and_then(|at| at.units.keys().next()).cloned();
        table.row([
            machine.cloned().unwrap_or_default().into(),
            unit.unwrap_or_default().into(),
            (&place.storage).into(),
            id.into(),
            (&place.provider_id).into(),
            mounted.map(|mounted| mounted.mount_point.clone()).unwrap_or_default().into(),
            mebibytes(place.size).into(),
            (place.status.current.as_str(), style_of_status(&place.status.current)).into(),
            (&place.status.message).into(),
        ]);
    }
    table
}
