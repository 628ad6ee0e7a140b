//! Storage: one instance attached, one being removed.

use periapt_host_api::{status::Life, storage::StorageEnd, view::StorageAttachment};
use periapt_model::entity::Storage;

use super::{Named, awkward_text, every, parse, time};

pub(crate) fn storages() -> Named<Storage> {
    let attached = Storage {
        id: parse("data/3"),
        pool: "rootfs".into(),
        size: 2048,
        agent: Some(parse("host-7.example")),
        attachment: Some(StorageAttachment {
            unit: parse("wordpress/10"),
            life: Life::Dying,
            location: "/srv/data".into(),
            read_only: true,
        }),
        end: None,
        detachments: 2,
        forgotten: false,
        failure: Some(awkward_text()),
        no_room: None,
        since: time(70),
    };
    let ends = every!(StorageEnd {
        "destroyed": StorageEnd::Destroy => StorageEnd::Destroy,
        "released": StorageEnd::Release => StorageEnd::Release,
    });
    let mut storages: Named<Storage> = ends
        .into_iter()
        .map(|(name, end)| {
            (name, Storage { end: Some(end), attachment: None, failure: None, ..attached.clone() })
        })
        .collect();
    storages.push(("attached", attached.clone()));
    storages.push((
        "forgotten",
        Storage {
            end: Some(StorageEnd::Destroy),
            attachment: None,
            forgotten: true,
            failure: None,
            ..attached.clone()
        },
    ));
    let pending = Storage { agent: None, detachments: 0, failure: None, ..attached };
    storages.push(("pending", pending.clone()));
    storages.push(("without-room", Storage { no_room: Some(awkward_text()), ..pending }));
    storages
}
