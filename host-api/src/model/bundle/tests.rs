use std::collections::BTreeMap;

use super::*;
use crate::{
    Digest, MachineId, StorageName,
    charm::{CharmFiles, CharmMeta},
    resource::ResourceUpload,
};

const SHOP: &str = "
applications:
  web:
    charm: ./web
    num_units: 3
    to: ['0', '1', new]
    options: {title: Cats, port: 8080}
    expose: true
  db:
    charm: ./db
    num_units: 2
    to: ['0', web/1]
    storage: {data: '2,500M'}
  shipper:
    charm: ./shipper
machines:
  0:
  1:
relations:
- [web:db, db:server]
- [shipper, [web, db]]
";

fn nothing_included(_: &str) -> Result<Option<String>, String> {
    Ok(None)
}

fn read(text: &str, overlays: &[&str]) -> Result<Bundle, BundleError> {
    Bundle::read(text, overlays.iter().copied(), nothing_included)
}

fn refused(text: &str) -> String {
    read(text, &[]).unwrap_err().to_string()
}

fn name(text: &str) -> ApplicationName {
    text.parse().unwrap()
}

fn charm(number: u8, metadata: &str) -> BundleCharm {
    let files = CharmFiles { charmcraft: Some(format!("type: charm\n{metadata}")), ..CharmFiles::default() };
    let meta = CharmMeta::parse(&files).unwrap();
    BundleCharm { digest: Digest::from_bytes([number; 32]), meta, resources: BTreeMap::new() }
}

fn charms() -> BTreeMap<ApplicationName, BundleCharm> {
    let web = "name: web\nsummary: a\ndescription: a\nrequires: {db: {interface: sql}}\n\
               provides: {site: http}\nstorage: {files: {type: filesystem, multiple: {range: 0+}}}\n\
               config: {options: {title: {type: string, description: a}, port: {type: int, description: a}}}\n";
    let db = "name: db\nsummary: a\ndescription: a\nprovides: {server: {interface: sql}}\n\
              storage: {data: {type: filesystem, multiple: {range: 1-3}}}\n";
    let shipper = "name: shipper\nsummary: a\ndescription: a\nsubordinate: true\n\
                   requires: {juju-info: {interface: juju-info, scope: container}}\n";
    let shipper = shipper.replace("juju-info:", "host:");
    BTreeMap::from([
        (name("web"), charm(1, web)),
        (name("db"), charm(2, db)),
        (name("shipper"), charm(3, &shipper)),
    ])
}

fn lines(bundle: &Bundle, model: &BundleModel) -> Vec<String> {
    let steps = plan(bundle, &charms(), model, &BTreeMap::new()).unwrap();
    steps.iter().map(ToString::to_string).collect()
}

/// Returns the model after a plan for an empty model, with a machine for each place.
fn done(steps: &[BundleStep]) -> BundleModel {
    let mut model = BundleModel::default();
    let mut machines = 0;
    for step in steps {
        match step {
            BundleStep::Deploy {
                application,
                charm,
                options,
                storage,
                bindings,
                constraints,
                trust,
                resources,
            } => {
                let charms = charms();
                let meta = &charms[application].meta;
                let typed = options
                    .iter()
                    .map(|(key, text)| (key.clone(), meta.options[key].kind.parse(text).unwrap()));
                let existing = Existing {
                    charm: *charm,
                    options: typed.collect(),
                    units: Vec::new(),
                    subordinate: meta.subordinate,
                    exposed: false,
                    exposures: BTreeMap::new(),
                    storage: storage.clone(),
                    bindings: bindings.clone(),
                    constraints: constraints.clone(),
                    trust: *trust,
                    resources: resources.iter().map(|(name, upload)| (name.clone(), upload.digest)).collect(),
                    offers: BTreeMap::new(),
                };
                model.applications.insert(application.clone(), existing);
            }
            BundleStep::Expose { application, endpoints } => {
                let application = model.applications.get_mut(application).unwrap();
                application.exposed = true;
                match endpoints.is_empty() {
                    true => drop(application.exposures.insert(String::new(), Exposure::default())),
                    false => application.exposures.extend(endpoints.clone()),
                }
            }
            BundleStep::AddUnits { application, count, place } => {
                for _ in 0..*count {
                    let machine = match place {
                        UnitPlace::Beside(beside, index) => model.applications[beside].units[*index].1,
                        _ => {
                            machines += 1;
                            Some(MachineId(machines))
                        }
                    };
                    let units = &mut model.applications.get_mut(application).unwrap().units;
                    units.push((
                        UnitName::new(application.clone(), u32::try_from(units.len()).unwrap()),
                        machine,
                    ));
                }
            }
            BundleStep::Offer { application, offer, endpoints } => {
                let offers = &mut model.applications.get_mut(application).unwrap().offers;
                offers.insert(offer.clone(), endpoints.clone());
            }
            BundleStep::Consume { application, offer } => {
                model.saas.insert(application.clone(), offer.clone());
            }
            BundleStep::Integrate(first, second) => {
                let end = |end: &EndpointSelector| {
                    let endpoint = end.endpoint.clone();
                    let implied = if end.application.as_str() == "shipper" { "host" } else { "juju-info" };
                    let endpoint = endpoint.unwrap_or_else(|| implied.parse().unwrap());
                    (end.application.clone(), endpoint)
                };
                model.relations.push([end(first), end(second)]);
            }
            other => panic!("{other} for an empty model"),
        }
    }
    model
}

#[test]
fn a_bundle_becomes_steps_in_an_order_that_can_be_done() {
    let bundle = read(SHOP, &[]).unwrap();
    assert_eq!(
        lines(&bundle, &BundleModel::default()),
        [
            "deploy application db from charm 020202020202, storage data=2,500M",
            "deploy application shipper from charm 030303030303",
            "deploy application web from charm 010101010101",
            "expose application web",
            "add 3 units of web on new machines",
            "add a unit of db on the machine of web's unit 0",
            "add a unit of db on the machine of web's unit 1",
            "integrate web:db with db:server",
            "integrate shipper with web",
            "integrate shipper with db",
        ]
    );
}

#[test]
fn the_same_bundle_again_changes_nothing_and_another_one_what_differs() {
    let bundle = read(SHOP, &[]).unwrap();
    let steps = plan(&bundle, &charms(), &BundleModel::default(), &BTreeMap::new()).unwrap();
    let model = done(&steps);
    assert_eq!(lines(&bundle, &model), Vec::<String>::new());

    let overlay = "applications: {web: {num_units: 4, options: {port: 81}, trust: true}}";
    let other = read(SHOP, &[overlay]).unwrap();
    assert_eq!(
        lines(&other, &model),
        ["set port of application web", "trust application web", "add a unit of web on a new machine"]
    );
}

#[test]
fn what_is_exported_makes_the_same_again() {
    let bundle = read(SHOP, &[]).unwrap();
    let model = done(&plan(&bundle, &charms(), &BundleModel::default(), &BTreeMap::new()).unwrap());
    let text = serde_json::to_string(&export(&model)).unwrap();
    let exported = read(&text, &[]).unwrap();
    assert_eq!(exported.applications[&name("web")].charm, format!("sha256:{}", "01".repeat(32)));
    assert_eq!(lines(&exported, &model), Vec::<String>::new());
    let again = done(&plan(&exported, &charms(), &BundleModel::default(), &BTreeMap::new()).unwrap());
    assert_eq!(again.applications[&name("db")].units.len(), 2);
    let data = &again.applications[&name("db")].storage[&StorageName::new("data").unwrap()];
    assert_eq!((data.count, data.size), (Some(2), Some(500)));
    let together = |model: &BundleModel, first: (&str, usize), second: (&str, usize)| {
        model.applications[&name(first.0)].units[first.1].1
            == model.applications[&name(second.0)].units[second.1].1
    };
    assert!(together(&again, ("db", 1), ("web", 1)));
    assert!(!together(&again, ("db", 1), ("web", 2)));
}

#[test]
fn resources_are_brought_where_they_differ() {
    let text = "applications: {db: {charm: ./db, resources: {rows: ./rows.csv, 'more.rows': ./more}}}";
    let bundle = read(text, &["applications: {db: {resources: {rows: ./other.csv}}}"]).unwrap();
    let places: Vec<_> = bundle.applications[&name("db")].resources.values().map(String::as_str).collect();
    assert_eq!(places, ["./more", "./other.csv"]);

    let metadata = "name: db\nsummary: a\ndescription: a\n\
                    resources: {rows: {type: file, filename: rows.csv}, image: {type: oci-image}}\n";
    let with = |resource: &str, content: &str, filename: &str| {
        let digest = Digest::of(content.as_bytes());
        let upload = ResourceUpload { digest, filename: Some(filename.to_owned()), reference: None };
        let resources = BTreeMap::from([(resource.parse().unwrap(), upload)]);
        BTreeMap::from([(name("db"), BundleCharm { resources, ..charm(2, metadata) })])
    };
    let planned =
        |charms: &BTreeMap<_, _>, model: &BundleModel| plan(&bundle, charms, model, &BTreeMap::new());
    let one = with("rows", "one", "other.csv");
    let model = done(&planned(&one, &BundleModel::default()).unwrap());
    assert_eq!(planned(&one, &model).unwrap(), []);
    let lines: Vec<_> = planned(&with("rows", "two", "other.csv"), &model).unwrap();
    let short = Digest::of(b"two").short();
    let line = format!("attach content {short} to resource rows of application db");
    assert_eq!(lines.iter().map(ToString::to_string).collect::<Vec<_>>(), [line]);

    let exported = serde_json::to_value(export(&model)).unwrap();
    let digest = format!("sha256:{}", Digest::of(b"one"));
    assert_eq!(exported["applications"]["db"]["resources"]["rows"], digest);

    for (resource, filename, expected) in [
        ("row", "x.csv", "charm db has no resource row; it has: image, rows"),
        ("rows", "rows.zip", "does not have the extension of \"rows.csv\""),
    ] {
        let error = planned(&with(resource, "one", filename), &model).unwrap_err().to_string();
        assert!(error.contains(expected), "{resource}: {error}");
    }
}

#[test]
fn what_other_models_offer_is_consumed_and_what_is_offered_to_them_offered() {
    let overlay = "applications: {db: {offers: {hosted: {endpoints: [server]}}}}\n\
                   saas: {theirs: {url: admin/prod.db}}\nrelations: [[web:db, theirs:server]]";
    let bundle = read(SHOP, &[overlay]).unwrap();
    let steps = plan(&bundle, &charms(), &BundleModel::default(), &BTreeMap::new()).unwrap();
    let lines_of: Vec<String> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(lines_of[1], "offer db as hosted");
    let consumed = lines_of.iter().position(|line| line == "consume offer admin/prod.db as theirs").unwrap();
    let related = lines_of.iter().position(|line| line == "integrate web:db with theirs:server").unwrap();
    assert!(consumed < related);
    let mut model = done(&steps);
    assert_eq!(lines(&bundle, &model), Vec::<String>::new());
    let text = serde_json::to_string(&export(&model)).unwrap();
    assert_eq!(lines(&read(&text, &[]).unwrap(), &model), Vec::<String>::new());
    model.saas.insert(name("theirs"), "admin/other.db".parse().unwrap());
    let error = plan(&bundle, &charms(), &model, &BTreeMap::new()).unwrap_err().to_string();
    assert_eq!(error, "saas theirs: the model has it for admin/other.db");
}

#[test]
fn an_overlay_adds_changes_and_takes_away() {
    let two_documents = format!("{SHOP}\n---\napplications:\n  shipper:\n  db: {{num_units: 5}}\n");
    let bundle = read(&two_documents, &["relations: [[web:db, 'db:server']]"]).unwrap();
    assert_eq!(bundle.applications.keys().map(ApplicationName::as_str).collect::<Vec<_>>(), ["db", "web"]);
    assert_eq!(bundle.applications[&name("db")].units, Some(5));
    // Relations of the removed application are gone, and a repeated relation is there once.
    assert_eq!(bundle.relations.len(), 1);
}

#[test]
fn an_option_may_stand_in_a_file() {
    let text = "applications: {web: {charm: ./web, options: {title: 'include-file://title.txt', port: 1}}}";
    let include = |value: &str| match value.strip_prefix("include-file://") {
        Some("title.txt") => Ok(Some("Dogs".to_owned())),
        Some(other) => Err(format!("no {other}")),
        None => Ok(None),
    };
    let bundle = Bundle::read(text, [], include).unwrap();
    assert_eq!(bundle.applications[&name("web")].options["title"], "Dogs");
    let error = Bundle::read(&text.replace("title.txt", "x"), [], include).unwrap_err().to_string();
    assert_eq!(error, "application web: option title: no x");
}

#[test]
fn what_is_no_bundle_is_refused_with_its_place() {
    for (text, expected) in [
        ("applications: [", "line 1 column"),
        ("applications:\n  web:\n    charm: a\n    num_unit: 3\n", "line 4 column"),
        ("applications:\n  web:\n    num_units: many\n", "line 3 column"),
        ("relations: []", "the bundle has no applications"),
        ("applications: {web: }", "application web: it has no charm"),
        ("applications: {Web!: {charm: a}}", "Web!"),
        ("applications: {web: {charm: a, to: ['lxd:0']}}", "there are no containers"),
        ("applications: {web: {charm: a, to: [7]}}", "place \"7\": the bundle's machines do not have it"),
        ("applications: {web: {charm: a, to: [db/0]}}", "beside db, which the bundle does not have"),
        ("applications: {web: {charm: a, to: [web]}}", "cannot be placed beside itself"),
        ("applications: {web: {charm: a, num_units: 20000}}", "20000 units are too many"),
        ("applications: {web: {charm: a, options: {a: [1]}}}", "option a is neither"),
        (
            "applications: {web: {charm: a, storage: {data: 1Q}}}",
            "application web: storage data: cannot parse",
        ),
        ("applications: {web: {charm: a, storage: {Data: 1G}}}", "application web: storage Data: "),
        (
            "applications: {web: {charm: a, resources: {rows: 7}}}",
            "resource rows: revisions of a store are not supported",
        ),
        ("applications: {web: {charm: a, resources: {rows: }}}", "resource rows: write the path"),
        ("applications: {web: {charm: a, resources: {../rows: x}}}", "invalid resource name"),
        ("applications: {web: {charm: a}}\nrelations: [[web:db, db]]", "the bundle has no application db"),
        ("applications: {web: {charm: a}}\nrelations: [[web:db]]", "write [APPLICATION:ENDPOINT"),
        ("applications: {web: {charm: a}}\nsaas: {x: {url: y}}", "saas x: invalid offer URL \"y\""),
        ("applications: {web: {charm: a}}\nsaas: {x: {}}", "saas x: it has no url"),
        (
            "applications: {web: {charm: a}}\nsaas: {web: {url: a.b}}",
            "saas web: the bundle has an application of this name",
        ),
        ("applications: {web: {charm: a, offers: {x: {}}}}", "application web: offer x: it has no endpoints"),
    ] {
        let error = refused(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn what_a_charm_does_not_have_is_refused_before_anything_is_done() {
    let charms = charms();
    for (overlay, expected) in [
        (
            "applications: {web: {options: {colour: red}}}",
            "charm web has no option colour; it has: port, title",
        ),
        ("applications: {web: {options: {port: eighty}}}", "option port is of type int, not \"eighty\""),
        ("applications: {shipper: {num_units: 2}}", "its charm is a subordinate"),
        ("applications: {db: {storage: {logs: 1G}}}", "charm db has no storage logs; it has: data"),
        ("relations: [[web:cache, db]]", "charm web has no such endpoint; it has: db, site"),
        ("applications: {web: {to: [db]}}", "in a circle"),
    ] {
        let bundle = read(SHOP, &[overlay]).unwrap();
        let error =
            plan(&bundle, &charms, &BundleModel::default(), &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains(expected), "{overlay}: {error}");
    }
}

#[test]
fn keys_of_machines_can_stand_for_machines_that_are_there() {
    let bundle = read(SHOP, &[]).unwrap();
    let machines = BTreeMap::from([("0".to_owned(), MachineId(7))]);
    let steps = plan(&bundle, &charms(), &BundleModel::default(), &machines).unwrap();
    let on_seven = |step: &&BundleStep| {
        matches!(step, BundleStep::AddUnits { place: UnitPlace::Machine(MachineId(7)), .. })
    };
    assert_eq!(steps.iter().filter(on_seven).count(), 2);
}

/// An overlay over [`SHOP`] for its application.
const DETAILS: &str = "
applications:
  web:
    expose:
    exposed-endpoints:
      '': {expose-to-spaces: [dmz]}
      site: {expose-to-cidrs: [192.0.2.0/24]}
    storage: {files: '2,100M'}
    bindings: {'': alpha, db: internal}
    constraints: mem=512M tags=ssd,^slow
";

#[test]
fn storage_bindings_exposure_and_constraints_are_parts_of_a_bundle() {
    let shop = SHOP.replace("    expose: true\n", "");
    let bundle = read(&shop, &[DETAILS]).unwrap();
    let steps = plan(&bundle, &charms(), &BundleModel::default(), &BTreeMap::new()).unwrap();
    let shown: Vec<_> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown[2..4],
        [
            "deploy application web from charm 010101010101, storage files=2,100M, bindings alpha db=internal, \
             constraints mem=512M tags=ssd,^slow",
            "expose application web; all endpoints to dmz; site to 192.0.2.0/24",
        ]
    );
    let model = done(&steps);
    assert_eq!(lines(&bundle, &model), Vec::<String>::new());

    // The exported bundle creates the same model, and exports to the same bundle.
    let text = serde_json::to_string(&export(&model)).unwrap();
    let exported = read(&text, &[]).unwrap();
    assert_eq!(lines(&exported, &model), Vec::<String>::new());
    let again = done(&plan(&exported, &charms(), &BundleModel::default(), &BTreeMap::new()).unwrap());
    assert_eq!(serde_json::to_string(&export(&again)).unwrap(), text);

    // Another bundle changes the differences only.
    let other = "applications: {web: {bindings: {db: dmz, site: alpha}, constraints: tags=gpu, \
                 exposed-endpoints: {site: {expose-to-cidrs: [198.51.100.0/24]}}}}";
    let other = read(&shop, &[DETAILS, other]).unwrap();
    assert_eq!(
        lines(&other, &model),
        [
            "bind application web: db=dmz",
            "constrain application web to tags=gpu",
            "expose application web; site to 198.51.100.0/24",
        ]
    );
    let wider = read(&shop, &[DETAILS, "applications: {web: {constraints: ''}}"]).unwrap();
    assert_eq!(lines(&wider, &model), ["take the constraints of application web back"]);
    let silent = read(&shop, &[]).unwrap();
    assert_eq!(lines(&silent, &model), Vec::<String>::new(), "what is not named stays");
    let larger = read(&shop, &[DETAILS, "applications: {web: {storage: {files: 3}}}"]).unwrap();
    let error = plan(&larger, &charms(), &model, &BTreeMap::new()).unwrap_err().to_string();
    assert!(error.contains("storage files cannot become 3"), "{error}");
}

#[test]
fn an_overlay_that_narrows_what_is_exposed_does_not_leave_it_wide_open() {
    let narrowed = "applications: {web: {exposed-endpoints: {site: {expose-to-cidrs: [192.0.2.0/24]}}}}";
    let bundle = read(SHOP, &[narrowed]).unwrap();
    let web = &bundle.applications[&name("web")];
    assert_eq!((web.expose, web.exposed_endpoints.len()), (false, 1));
    let bundle = read(SHOP, &[narrowed, "applications: {web: {expose: false}}"]).unwrap();
    let web = &bundle.applications[&name("web")];
    assert_eq!((web.expose, web.exposed_endpoints.len()), (false, 0));
}

#[test]
fn details_that_cannot_be_are_refused_by_name() {
    let web = |body: &str| format!("applications: {{web: {{charm: a, {body}}}}}");
    for (body, expected) in [
        ("expose: true, exposed-endpoints: {'': }", "for everybody (expose) and for some"),
        ("exposed-endpoints: {site: {expose-to-cidrs: [x]}}", "exposed-endpoints \"site\": invalid CIDR"),
        ("exposed-endpoints: {site: {to: [x]}}", "line 1 column"),
        ("storage: {files: [1]}", "storage files: invalid directive [1]"),
        ("storage: {files: '0'}", "storage files: cannot parse count"),
        ("bindings: {db: No_Space}", "binding \"db\": "),
        (
            "constraints: spaces=dmz",
            "constraint \"spaces\" is not supported, because endpoints are bound to spaces",
        ),
    ] {
        let error = refused(&web(body));
        assert!(error.contains(expected), "{body}: {error}");
    }
    let charms = charms();
    for (overlay, expected) in [
        ("applications: {web: {storage: {data: 1G}}}", "charm web has no storage data; it has: files"),
        ("applications: {shipper: {storage: {data: 1G}}}", "charm shipper has no storage data; it has none"),
        ("applications: {web: {bindings: {cache: dmz}}}", "charm web has no endpoint \"cache\" to bind"),
        (
            "applications: {web: {expose: , exposed-endpoints: {cache: }}}",
            "charm web has no endpoint \"cache\" to expose; it has: db, site",
        ),
    ] {
        let bundle = read(SHOP, &[overlay]).unwrap();
        let error =
            plan(&bundle, &charms, &BundleModel::default(), &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains(expected), "{overlay}: {error}");
    }
}
