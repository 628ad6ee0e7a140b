//! `resources`

use std::str::FromStr;

use clap::Args;
use periapt_host_api::{
    ApplicationName, Timestamp, UnitName, api::ResourceDetails, resource::ResourceRevision,
};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{OutputArgs, Table},
    parse::ParseError,
};

/// Show the resources of an application or a unit
///
/// For a unit, it shows the revisions of its last upgrade-charm. In JSON and YAML, an application's resources have the
/// revisions before the present one that are kept: `refresh --resource NAME=REVISION` goes back to one.
#[derive(Debug, Args)]
#[command(
    visible_alias = "list-resources",
    after_help = "\
Examples:
  periapt resources mysql
  periapt resources mysql/0
  periapt resources mysql --details --format yaml"
)]
pub(crate) struct Resources {
    /// The application, or one of its units
    #[arg(value_name = "APPLICATION|UNIT")]
    target: Target,
    /// Show each unit's resources, beside the application's
    #[arg(long)]
    details: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// The owner of the listed resources.
#[derive(Debug, Clone)]
enum Target {
    Application(ApplicationName),
    Unit(UnitName),
}

impl FromStr for Target {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match (ApplicationName::new(text), text.parse()) {
            (Ok(application), _) => Ok(Self::Application(application)),
            (_, Ok(unit)) => Ok(Self::Unit(unit)),
            _ => Err(ParseError::Form(format!("{text:?} is neither an application nor a unit"))),
        }
    }
}

impl Target {
    fn application(&self) -> &ApplicationName {
        match self {
            Self::Application(application) => application,
            Self::Unit(unit) => unit.application(),
        }
    }
}

/// A resource with Juju's field names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct ShownResource {
    #[serde(rename = "resourceid", skip_serializing_if = "String::is_empty")]
    id: String,
    #[serde(rename = "applicationId", skip_serializing_if = "String::is_empty")]
    application: String,
    name: String,
    r#type: String,
    path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    revision: String,
    fingerprint: String,
    size: u64,
    origin: String,
    used: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
    #[serde(skip_serializing_if = "String::is_empty")]
    username: String,
    /// The image in the content, which Juju has no field for.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<AttachedImage>,
    /// The revisions before it that the controller keeps, by the application's own row.
    #[serde(rename = "former-revisions", skip_serializing_if = "Vec::is_empty")]
    former: Vec<u64>,
}

/// The image of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct AttachedImage {
    digest: String,
    platform: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

impl AttachedImage {
    fn of(revision: &ResourceRevision) -> Option<Self> {
        let image = revision.image.as_ref()?;
        Some(Self {
            digest: format!("sha256:{}", image.digest),
            platform: image.platform.clone(),
            reference: revision.reference.as_ref().map(|name| name.as_str().to_owned()),
        })
    }
}

impl ShownResource {
    /// Creates a row from a resource and a revision of its content; none without content.
    fn of(
        application: &ApplicationName,
        resource: &ResourceDetails,
        revision: Option<&ResourceRevision>,
    ) -> Self {
        let name = resource.name.to_string();
        let shown = Self {
            id: format!("{application}/{name}"),
            application: application.to_string(),
            name,
            r#type: resource.meta.kind.as_str().to_owned(),
            path: resource.meta.filename().unwrap_or_default().to_owned(),
            description: resource.meta.description.clone(),
            revision: "-".to_owned(),
            origin: "upload".to_owned(),
            ..Self::default()
        };
        match revision {
            None => shown,
            Some(revision) => Self {
                revision: revision.revision.to_string(),
                fingerprint: revision.digest.to_string(),
                size: revision.size,
                used: true,
                timestamp: Some(revision.attached_at),
                username: revision.attached_by.to_string(),
                image: AttachedImage::of(revision),
                ..shown
            },
        }
    }

    /// Returns the time of the upload, or `-` for content that was not uploaded.
    fn when(&self) -> String {
        let time = self.timestamp.map(|time| time.strftime("%Y-%m-%dT%H:%M").to_string());
        time.unwrap_or_else(|| "-".to_owned())
    }

    fn supplied_by(&self) -> &str {
        match self.username.as_str() {
            "" => &self.origin,
            user => user,
        }
    }
}

/// A unit's resource, beside the application's.
#[derive(Debug, Clone, Serialize)]
struct Detail {
    #[serde(rename = "unitID")]
    unit: String,
    #[serde(rename = "unit")]
    has: ShownResource,
    expected: ShownResource,
}

#[derive(Debug, Serialize)]
struct Listed<T> {
    resources: Vec<T>,
}

impl Verb for Resources {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let application = self.target.application().clone();
        let resources = model.client().resources(&model.selector, &application).await?;
        if let Target::Unit(unit) = &self.target {
            let known = resources.first().is_none_or(|resource| resource.units.contains_key(unit));
            if !known {
                return Err(Failure::new(format!("unit \"{unit}\" not found")));
            }
        }
        if resources.is_empty() {
            context.say("No resources to display.");
            return Ok(());
        }
        let expected = |resource: &ResourceDetails| ShownResource {
            former: resource.former.iter().map(|former| former.revision).collect(),
            ..ShownResource::of(&application, resource, resource.attached.as_ref())
        };
        let (color, output) = (context.color, &self.output);
        match (&self.target, self.details) {
            (Target::Application(_), false) => {
                let listed = Listed { resources: resources.iter().map(expected).collect() };
                output.print(color, &listed, |listed| of_application(&listed.resources).render())
            }
            (Target::Application(_), true) => {
                let listed = Listed { resources: details(&application, &resources, None) };
                output.print(color, &listed, |listed| in_detail(&listed.resources).render())
            }
            (Target::Unit(unit), false) => {
                let has = |resource: &ResourceDetails| {
                    let revision = resource.units.get(unit).and_then(Option::as_ref);
                    ShownResource::of(&application, resource, revision)
                };
                let listed: Vec<_> = resources.iter().map(has).collect();
                output.print(color, &listed, |listed| of_unit(listed).render())
            }
            (Target::Unit(unit), true) => {
                let listed = details(&application, &resources, Some(unit));
                output.print(color, &listed, |listed| of_unit_in_detail(listed).render())
            }
        }
    }
}

/// Returns the rows, by unit, then by name.
fn details(
    application: &ApplicationName,
    resources: &[ResourceDetails],
    only: Option<&UnitName>,
) -> Vec<Detail> {
    let units = resources.first().into_iter().flat_map(|resource| resource.units.keys());
    let units = units.filter(|unit| only.is_none_or(|only| only == *unit));
    let detail = |unit: &UnitName, resource: &ResourceDetails| {
        let has = resource.units.get(unit).and_then(Option::as_ref);
        Detail {
            unit: unit.to_string(),
            has: has.map(|has| ShownResource::of(application, resource, Some(has))).unwrap_or_default(),
            expected: ShownResource::of(application, resource, resource.attached.as_ref()),
        }
    };
    units.flat_map(|unit| resources.iter().map(move |resource| detail(unit, resource))).collect()
}

fn of_application(resources: &[ShownResource]) -> Table {
    let mut table = Table::new(["Resource", "Supplied by", "Revision"]);
    for shown in resources {
        table.row([(&shown.name).into(), shown.supplied_by().into(), shown.when().into()]);
    }
    table
}

fn of_unit(resources: &[ShownResource]) -> Table {
    let mut table = Table::new(["Resource", "Revision"]);
    for shown in resources {
        table.row([(&shown.name).into(), shown.when().into()]);
    }
    table
}

fn in_detail(details: &[Detail]) -> Table {
    let mut table = Table::new(["Unit", "Resource", "Revision", "Expected"]);
    for Detail { unit, has, expected } in details {
        table.row([unit.into(), (&expected.name).into(), has.when().into(), expected.when().into()]);
    }
    table
}

fn of_unit_in_detail(details: &[Detail]) -> Table {
    let mut table = Table::new(["Resource", "Revision", "Expected"]);
    for Detail { has, expected, .. } in details {
        table.row([(&expected.name).into(), has.when().into(), expected.when().into()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use periapt_host_api::{
        Digest,
        charm::{ResourceKind, ResourceMeta},
    };

    use super::*;

    fn revision(revision: u64, second: i64) -> ResourceRevision {
        ResourceRevision {
            revision,
            digest: Digest::of(&[7]),
            size: 3,
            attached_at: Timestamp::from_second(1_767_225_600 + second).unwrap(),
            attached_by: "admin".parse().unwrap(),
            image: None,
            reference: None,
        }
    }

    /// Returns a resource that was attached twice, the second time known to `app/0` and not to
    /// `app/1`; and one without content.
    fn resources() -> Vec<ResourceDetails> {
        let meta = |filename: &str| ResourceMeta {
            kind: ResourceKind::File { filename: filename.to_owned() },
            description: String::new(),
        };
        let units = |first: Option<ResourceRevision>, second: Option<ResourceRevision>| {
            BTreeMap::from([("app/0".parse().unwrap(), first), ("app/1".parse().unwrap(), second)])
        };
        let (old, new) = (revision(1, 0), revision(2, 3_600));
        vec![
            ResourceDetails {
                name: "data".parse().unwrap(),
                meta: meta("rows.csv"),
                attached: Some(new.clone()),
                former: vec![old.clone()],
                units: units(Some(new), Some(old)),
            },
            ResourceDetails {
                name: "more".parse().unwrap(),
                meta: meta("more.csv"),
                attached: None,
                former: Vec::new(),
                units: units(None, None),
            },
        ]
    }

    fn drawn(table: &Table) -> String {
        anstream::adapter::strip_str(&table.render()).to_string()
    }

    #[test]
    fn tables_have_jujus_columns() {
        let (resources, application) = (resources(), "app".parse().unwrap());
        let shown: Vec<_> = resources
            .iter()
            .map(|resource| ShownResource::of(&application, resource, resource.attached.as_ref()))
            .collect();
        assert_eq!(
            drawn(&of_application(&shown)),
            "Resource  Supplied by  Revision\n\
             data      admin        2026-01-01T01:00\n\
             more      upload       -\n"
        );
        assert_eq!(
            drawn(&in_detail(&details(&application, &resources, None))),
            "Unit   Resource  Revision          Expected\n\
             app/0  data      2026-01-01T01:00  2026-01-01T01:00\n\
             app/0  more      -                 -\n\
             app/1  data      2026-01-01T00:00  2026-01-01T01:00\n\
             app/1  more      -                 -\n"
        );
        let one = details(&application, &resources, Some(&"app/1".parse().unwrap()));
        assert_eq!(
            drawn(&of_unit_in_detail(&one)),
            "Resource  Revision          Expected\n\
             data      2026-01-01T00:00  2026-01-01T01:00\n\
             more      -                 -\n"
        );
    }

    #[test]
    fn fields_have_jujus_names() {
        let (resources, application) = (resources(), "app".parse().unwrap());
        let shown = ShownResource::of(&application, &resources[0], resources[0].attached.as_ref());
        let digest = Digest::of(&[7]).to_string();
        assert_eq!(
            serde_json::to_value(&shown).unwrap(),
            serde_json::json!({
                "resourceid": "app/data", "applicationId": "app", "name": "data", "type": "file",
                "path": "rows.csv", "revision": "2", "fingerprint": digest, "size": 3, "origin": "upload",
                "used": true, "timestamp": "2026-01-01T01:00:00Z", "username": "admin",
            })
        );
        let detail = serde_json::to_value(&details(&application, &resources, None)[1]).unwrap();
        assert_eq!((&detail["unitID"], &detail["expected"]["used"]), (&"app/0".into(), &false.into()));
        assert_eq!(detail["expected"]["revision"], "-");
    }

    #[test]
    fn a_target_is_an_application_or_a_unit() {
        assert!(matches!("app".parse(), Ok(Target::Application(_))));
        assert!(matches!("app/0".parse(), Ok(Target::Unit(_))));
        let error = "App/0".parse::<Target>().unwrap_err();
        assert_eq!(error.to_string(), "\"App/0\" is neither an application nor a unit");
    }
}
