//! The output of listings, field by field: Juju's names, types and nesting in JSON, its order in YAML, its columns in
//! tables.

mod tree;

use anyhow::{Context as _, ensure};
use periapt_tests::Installation;
use serde_json::Value;

use self::tree::Tree;

/// Commands with a pointer into their JSON and the fields there, each with its type, in YAML's order. More fields are
/// allowed. ` | ` separates a different pointer in YAML, `=` a field's different name there.
const FIELDS: &[(&str, &str, &str)] = &[
    (
        "controllers",
        "/controllers/local",
        "current-model:text user:text access:text recent-server:text controller-uuid:text uuid:text \
         api-endpoints:list ca-cert:text cloud:text region:text agent-version:text model-count:number \
         machine-count:number controller-machines:map",
    ),
    ("controllers", "/controllers/local/controller-machines", "active:number total:number"),
    ("controllers", "", "controllers:map current-controller:text"),
    (
        "show-controller",
        "/local/details",
        "controller-uuid:text uuid:text api-endpoints:list cloud:text region:text agent-version:text ca-cert:text",
    ),
    ("show-controller", "/local", "details:map models:map current-model:text account:map"),
    (
        "show-controller",
        "/local/models/test",
        "model-uuid:text uuid:text machine-count:number unit-count:number",
    ),
    (
        "models",
        "/models/0",
        "name:text short-name:text model-uuid:text model-type:text controller-uuid:text controller-name:text \
         is-controller:truth owner:text cloud:text region:text type:text life:text status:map access:text \
         last-connection:text agent-version:text",
    ),
    ("models", "", "models:list current-model:text"),
    (
        "show-model",
        "/test",
        "name:text short-name:text model-uuid:text model-type:text controller-uuid:text controller-name:text \
         is-controller:truth owner:text cloud:text region:text type:text life:text status:map users:map \
         machines:map secret-backends:map agent-version:text supported-features:list periapt-version:text",
    ),
    ("show-model", "/test/secret-backends/internal", "num-secrets:number status:text"),
    ("show-model", "/test/supported-features/0", "name:text description:text version:text"),
    ("version --all", "", "version:text periapt-version:text engine:text level:number"),
    ("model-config", "/logging-config", "Value=value:text Source=source:text"),
    ("status", "/controller", "timestamp:text periapt-version:text engine:text"),
    ("show-model", "/test/users/admin", "display-name:text access:text last-connection:text"),
    ("operations", "/1", "summary:text status:text action:map timing:map tasks:map"),
    ("show-operation 1", "/timing", "enqueued:text started:text completed:text"),
    ("show-operation 1", "/tasks/2", "host:text status:text timing:map log:list results:map"),
    ("show-task 2", "", "id:text log:list results:map status:text timing:map unit:text"),
    ("show-task 2", "/timing", "completed:text enqueued:text started:text"),
    ("spaces", "/spaces/0", "id:text name:text subnets:map"),
    ("spaces --short", "", "spaces:list"),
    ("show-space lan", "", "space:map applications:list machine-count:number"),
    ("show-space lan", "/space/subnets/0", "cidr:text vlan-tag:number zones:list"),
    ("subnets", "/subnets/192.0.2.0~124", "type:text status:text space:text zones:list"),
    ("storage", "/storage/scratch~10", "kind:text life:text status:map persistent:truth attachments:map"),
    ("storage", "/storage/scratch~10/attachments/units/probe~10", "machine:text location:text life:text"),
    ("storage", "/storage/scratch~10/status", "current:text since:since"),
    ("storage --filesystem", "", "filesystems:map"),
    (
        "storage --filesystem",
        "/filesystems/0",
        "provider-id:text storage:text attachments:map pool:text size:number life:text status:map",
    ),
    (
        "show-storage scratch/0",
        "/scratch~10",
        "kind:text life:text status:map persistent:truth attachments:map",
    ),
    ("storage-pools", "/rootfs", "provider:text"),
    (
        "offers",
        "/hosted",
        "application:text store:text charm:text offer-url:text endpoints:map connections:list users:map",
    ),
    (
        "offers",
        "/hosted/connections/0",
        "source-model-uuid:text username:text relation-id:number endpoint:text status:map",
    ),
    ("find-offers", "/local:admin~1test.hosted", "access:text endpoints:map users:map"),
    (
        "show-offer admin/test.hosted",
        "/local:admin~1test.hosted",
        "description:text access:text endpoints:map users:map",
    ),
    (
        "show-offer admin/test.hosted",
        "/local:admin~1test.hosted/users/admin",
        "display-name:text access:text",
    ),
    ("show-offer admin/test.hosted", "/local:admin~1test.hosted/endpoints/db", "interface:text role:text"),
    (
        "resources probe",
        "/resources/0",
        "resourceid:text applicationId:text name:text type:text path:text description:text revision:text \
         fingerprint:text size:number origin:text used:truth timestamp:text username:text",
    ),
    ("machines", "", "model:text machines:map"),
    (
        "show-machine 0",
        "/machines/0",
        "juju-status:map hostname:text dns-name:text ip-addresses:list instance-id:text machine-status:map \
         modification-status:map base:map hardware:text",
    ),
    ("machines", "/machines/0/modification-status", "current:text since:since"),
    ("clouds", "/mine", "defined:text type:text auth-types:list credential-count:number regions:map"),
    (
        "show-cloud mine",
        "/0 | ",
        "name:text summary:text defined:text type:text auth-types:list credential-count:number regions:map",
    ),
    ("credentials", "/client-credentials/mine/cloud-credentials/key", "auth-type:text details:map"),
    ("show-credential mine key", "/client-credentials/mine/key/content", "auth-type:text username:text"),
    (
        "show-unit probe/0",
        "/probe~10",
        "machine:text public-address:text charm:text leader:truth life:text relation-info:list",
    ),
    (
        "show-unit probe/0",
        "/probe~10/relation-info/0",
        "relation-id:number endpoint:text related-endpoint:text application-data:map local-unit:map \
         related-units:map",
    ),
    ("users", "/0", "user-name:text display-name:text access:text date-created:text last-connection:text"),
    ("whoami", "", "controller:text model:text user:text"),
    ("actions probe", "", "act:text greet:text"),
    ("actions probe --schema", "/greet", "description:text properties:map title:text type:text"),
    ("config probe", "", "application:text application-config:map charm:text settings:map"),
    ("config probe", "/settings/count", "default:truth description:text source:text type:text value:truth"),
    (
        "show-application probe",
        "/probe",
        "charm:text base:text constraints:map principal:truth exposed:truth remote:truth life:text \
         endpoint-bindings:map",
    ),
    ("secrets", "/SECRET", "revision:number owner:text name:text created:text updated:text"),
    (
        "show-secret pw --reveal",
        "/SECRET",
        "revision:number owner:text name:text created:text updated:text content:map checksum:text",
    ),
    (
        "show-secret pw --revisions",
        "/SECRET",
        "revision:number owner:text name:text created:text updated:text revisions:list",
    ),
    (
        "show-secret pw --revisions",
        "/SECRET/revisions/0",
        "revision:number backend:text created:text updated:text",
    ),
    ("show-secret granted", "/GRANTED/access/0", "target:text scope:text role:text"),
    ("model-config", "/firewall-mode", "Value=value:text Source=source:text"),
    ("model-constraints", "", "cores:number mem:number"),
    ("model-defaults", "/firewall-mode", "default:text"),
    ("show-status-log probe/0", "/0", "status:text since:text type:text"),
    ("status", "", "model:map machines:map applications:map offers:map storage:map controller:map"),
    (
        "status",
        "/model",
        "name:text type:text controller:text cloud:text region:text version:text model-status:map",
    ),
    ("status", "/model/model-status", "current:text since:since"),
    (
        "status",
        "/machines/0",
        "juju-status:map hostname:text dns-name:text ip-addresses:list instance-id:text machine-status:map \
         modification-status:map base:map network-interfaces:map hardware:text",
    ),
    ("status", "/machines/0/base", "name:text channel:text"),
    (
        "status",
        "/applications/probe",
        "charm:text base:map charm-origin:text charm-name:text charm-rev:number exposed:truth \
         application-status:map relations:map units:map endpoint-bindings:map",
    ),
    ("status", "/applications/probe/base", "name:text channel:text"),
    ("status", "/applications/probe/application-status", "current:text since:since"),
    (
        "status",
        "/applications/probe/units/probe~10",
        "workload-status:map juju-status:map leader:truth machine:text public-address:text",
    ),
    ("status", "/applications/probe/units/probe~10/juju-status", "current:text since:since"),
    ("status", "/storage", "storage:map filesystems:map"),
    (
        "status",
        "/storage/storage/scratch~10",
        "kind:text life:text status:map persistent:truth attachments:map",
    ),
    (
        "status -m other",
        "/application-endpoints/db",
        "url:text endpoints:map application-status:map relations:map",
    ),
    ("status -m other", "/application-endpoints/db/endpoints/db", "interface:text role:text"),
    ("status", "/applications/probe/units/probe~10/workload-status", "current:text since:since"),
    ("status", "/controller", "timestamp:text"),
    ("status", "/offers/hosted", "application:text charm:text total-connected-count:number endpoints:map"),
];

/// Commands with the headers of their tables.
const COLUMNS: &[(&str, &str)] = &[
    ("controllers", "Controller  Model  User  Access  Cloud/Region  Models  Nodes  HA  Version  Status"),
    ("models", "Model  Cloud/Region  Type  Status  Machines  Units  Access  Last connection"),
    ("operations", "ID  Status  Started  Finished  Task IDs  Summary"),
    ("spaces", "Name  Space ID  Subnets"),
    ("spaces --short", "Space"),
    ("storage", "Unit  Storage ID  Type  Pool  Size  Status  Message"),
    ("storage --filesystem", "Machine  Unit  Storage ID  ID  Provider ID  Mountpoint"),
    ("storage-pools", "Name  Provider  Attributes"),
    ("offers", "Offer  User  Relation ID  Status  Endpoint  Interface  Role  Ingress subnets"),
    ("offers --format summary", "Offer  Application  Charm  Connected  Store  URL"),
    ("find-offers", "Store  URL  Access  Interfaces"),
    ("show-offer admin/test.hosted", "Store  URL  Access  Description"),
    ("secrets", "ID  Name  Owner  Rotation  Revision  Last updated"),
    ("resources probe", "Resource  Supplied by  Revision"),
    ("machines", "Machine  State  Address"),
    ("clouds", "Cloud  Regions  Default  Type  Credentials  Source  Description"),
    ("credentials", "Cloud  Credentials"),
    ("actions probe", "Action  Description"),
    ("model-config", "Attribute  From  Value"),
    ("model-defaults", "Attribute  Default  Controller"),
    ("show-status-log probe/0", "Time  Type  Status"),
    ("status", "Model  Controller  Cloud/Region  Version  Timestamp"),
    ("status --relations", "Integration provider  Requirer"),
    ("status --format summary", "Running on subnets:"),
    ("users", "Name  Display name  Access  Date created  Last connection"),
    ("users test", "Name  Display name  Access  Last connection"),
];

/// Creates two settled models with something of everything.
fn furnished() -> anyhow::Result<Installation> {
    let periapt = Installation::bootstrapped()?;
    let write = |name: &str, text: &str| std::fs::write(periapt.path().join(name), text);
    write("data.txt", "some")?;
    write("cloud.yaml", "clouds: {mine: {type: openstack, auth-types: [userpass], regions: {dev: {}}}}\n")?;
    write("keys.yaml", "credentials: {mine: {key: {auth-type: userpass, username: u, password: p}}}\n")?;
    periapt.ok(["add-space", "lan", "192.0.2.0/24"])?;
    let script = "script=*: status active fine";
    periapt
        .deploy("probe", ["--config", script, "--resource", "data=data.txt", "--storage", "scratch=1,10M"])?;
    periapt.ok(["offer", "probe:db", "hosted"])?;
    periapt.ok(["add-secret", "pw", "pass=word"])?;
    periapt.ok(["add-secret", "granted", "pass=word"])?;
    periapt.ok(["grant-secret", "granted", "probe"])?;
    periapt.ok(["set-model-constraints", "cores=1", "mem=64M"])?;
    periapt.ok(["set-constraints", "probe", "mem=96M"])?;
    periapt.ok(["add-cloud", "mine", "--client", "-f", "cloud.yaml"])?;
    periapt.ok(["add-credential", "mine", "--client", "-f", "keys.yaml"])?;
    periapt.ok(["add-model", "other"])?;
    periapt.deploy("probe", ["--config", script])?;
    periapt.ok(["consume", "admin/test.hosted", "db"])?;
    periapt.ok(["integrate", "probe:sink", "db"])?;
    periapt.wait_for(["model"])?;
    periapt.ok(["switch", "test"])?;
    periapt.wait_for(["model"])?;
    periapt.ok(["run", "probe/0", "greet"])?;
    periapt.json_until(&["offers"], |offers| {
        offers.pointer("/hosted/connections/0/status/current").is_some_and(|status| status == "joined")
    })?;
    Ok(periapt)
}

/// Returns true if a value has a type.
fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "text" => value.is_string(),
        "number" => value.is_u64(),
        "truth" => value.is_boolean(),
        "list" => value.is_array(),
        "map" => value.is_object(),
        // `02 Jan 2026 15:04:05Z`
        "since" => value.as_str().is_some_and(|text| {
            text.len() == 21 && text.ends_with('Z') && text.split(' ').count() == 4 && !text.contains('-')
        }),
        _ => false,
    }
}

/// Returns the cells of a table's line; at least two spaces separate columns.
fn columns(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty())
}

#[test]
fn listings_have_jujus_fields_in_jujus_order_and_jujus_columns() -> anyhow::Result<()> {
    let periapt = furnished()?;
    let mut wrong = Vec::new();
    let secrets = periapt.json(["secrets"])?;
    let of = |name: &str| {
        secrets.as_object()?.iter().find(|(_, secret)| secret["name"] == name).map(|(id, _)| id.clone())
    };
    let (plain, granted) = (of("pw").context("pw")?, of("granted").context("granted")?);
    for (command, at, wanted) in FIELDS {
        let json = periapt.json(command.split(' '))?;
        // Secret ids are random.
        let at = at.replace("SECRET", &plain).replace("GRANTED", &granted);
        let (at, at_in_yaml) = at.split_once(" | ").unwrap_or((&at, &at));
        let place = json.pointer(at).unwrap_or(&Value::Null);
        for field in wanted.split_whitespace() {
            let (name, kind) = field.split_once(':').context("a field has a kind")?;
            let name = name.split('=').next().unwrap_or(name);
            if !is(&place[name], kind) {
                wrong.push(format!("{command}: {at}/{name} is no {kind}: {}", place[name]));
            }
        }
        let yaml = periapt.ok(command.split(' ').chain(["--format", "yaml"]))?;
        let tree: Tree = periapt_host_api::yaml::parse(&yaml)?;
        let names = wanted.split_whitespace().filter_map(|field| field.split(':').next());
        let names = names.map(|name| name.split_once('=').map_or(name, |(_, in_yaml)| in_yaml));
        let found = tree.at(at_in_yaml).map(Tree::fields).unwrap_or_default();
        let in_order: Vec<_> =
            found.iter().copied().filter(|field| names.clone().any(|name| name == *field)).collect();
        if !names.clone().eq(in_order) {
            let names: Vec<_> = names.collect();
            wrong.push(format!("{command}: {at_in_yaml} has {found:?}, and is to have {names:?}"));
        }
    }
    for (command, heading) in COLUMNS {
        let text = periapt.ok(command.split(' '))?;
        let heading: Vec<_> = columns(heading).collect();
        if !text.lines().any(|line| columns(line).take(heading.len()).eq(heading.iter().copied())) {
            wrong.push(format!("{command}: no columns {heading:?} in\n{text}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
