//! The WebAssembly workloads that a charm declares in `x-periapt`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{
    CharmFiles, ContainerMeta, MAX_CONTAINERS, MetadataError, WorkloadMeta,
    error::{read, rule},
    files::EXTENSION,
};
use crate::{ContainerName, excerpt::shortened, rule::BrokenRule};

/// The longest name, as of a container.
const LONGEST_NAME: usize = 63;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawMetadata {
    #[serde(rename = "x-periapt")]
    extension: Option<Value>,
    containers: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawExtension {
    workloads: Option<BTreeMap<String, RawWorkload>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawWorkload {
    component: Option<String>,
    http: Option<u16>,
}

impl CharmFiles {
    /// Returns the workloads that the metadata declares, by name.
    ///
    /// # Errors
    /// [`MetadataError`] names the file, the workload and the rule.
    pub fn workloads(&self) -> Result<BTreeMap<String, WorkloadMeta>, MetadataError> {
        let (file, text) = self.main()?;
        let raw: RawMetadata = read(file, text)?;
        declared(&raw).map_err(|broken| rule(file, broken.at(EXTENSION).to_string()))
    }
}

/// Adds workloads to the containers of a charm: each is a container whose software is a component.
pub(super) fn join(
    containers: &mut BTreeMap<ContainerName, ContainerMeta>,
    workloads: BTreeMap<String, WorkloadMeta>,
) -> Result<(), BrokenRule> {
    let declared = containers.len() + workloads.len();
    if declared > MAX_CONTAINERS {
        return Err(format!(
            "{declared} containers and workloads are declared; at most {MAX_CONTAINERS} are allowed"
        )
        .into());
    }
    for (name, workload) in workloads {
        let name = ContainerName::new(&name).map_err(BrokenRule::of)?;
        containers.insert(name, ContainerMeta { workload: Some(workload), ..ContainerMeta::default() });
    }
    Ok(())
}

fn declared(raw: &RawMetadata) -> Result<BTreeMap<String, WorkloadMeta>, BrokenRule> {
    let Some(extension) = raw.extension.as_ref().filter(|raw| !raw.is_null()) else {
        return Ok(BTreeMap::new());
    };
    let RawExtension { workloads } = RawExtension::deserialize(extension).map_err(BrokenRule::of)?;
    let workloads = workloads.unwrap_or_default();
    if workloads.len() > MAX_CONTAINERS {
        return Err(format!("a charm may have {MAX_CONTAINERS} workloads").into());
    }
    let (mut found, mut ports) = (BTreeMap::new(), BTreeSet::new());
    for (name, workload) in workloads {
        let checked = workload.check(&name, raw.containers.as_ref());
        let meta = checked.map_err(|broken| broken.at(format_args!("workload {}", shortened(&name))))?;
        if let Some(port) = meta.http.filter(|port| !ports.insert(*port)) {
            return Err(format!("two workloads have port {port}").into());
        }
        found.insert(name, meta);
    }
    Ok(found)
}

impl RawWorkload {
    fn check(self, name: &str, containers: Option<&Value>) -> Result<WorkloadMeta, BrokenRule> {
        if !is_name(name) {
            return Err(
                "a name has lower-case letters, digits and single dashes, and begins with a letter".into()
            );
        }
        if containers.is_some_and(|containers| containers.get(name).is_some()) {
            return Err("a container has this name".into());
        }
        let component = self.component.filter(|path| !path.is_empty());
        let component = component.ok_or("component is missing: the path of a file of the charm")?;
        if !is_within(&component) {
            return Err(format!("component {:?} is no path within the charm", shortened(&component)).into());
        }
        match self.http {
            Some(0) => Err("http 0 is no port".into()),
            http => Ok(WorkloadMeta { component, http }),
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= LONGEST_NAME
        && name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.split('-').all(is_word)
}

/// The longest path of a component, in bytes, as in an archive.
const LONGEST_PATH: usize = 512;

/// Returns true for a relative path in the form that archives have.
fn is_within(path: &str) -> bool {
    path.len() <= LONGEST_PATH
        && !path.contains(['\\', ':'])
        && !path.chars().any(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charm::CharmMeta;
    use crate::workloads::WorkloadInterface;

    fn workloads(text: &str) -> Result<BTreeMap<String, WorkloadMeta>, String> {
        let metadata = Some(format!("name: c\nsummary: s\ndescription: d\n{text}"));
        let files = CharmFiles { metadata, ..CharmFiles::default() };
        files.workloads().map_err(|error| error.to_string())
    }

    #[test]
    fn a_workload_is_a_component_with_a_port_or_without() {
        for text in ["", "x-periapt:\n", "x-periapt: {}\n", "x-periapt: {workloads: {}}\n"] {
            assert_eq!(workloads(text).unwrap(), BTreeMap::new(), "{text}");
        }
        let text = "x-periapt: {workloads: {web: {component: web.wasm, http: 8080}, job-2: {component: a/b.wasm}}}\n";
        let found = workloads(text).unwrap();
        let web = WorkloadMeta { component: "web.wasm".to_owned(), http: Some(8080) };
        assert_eq!(web.interface(), WorkloadInterface::Http);
        let job = WorkloadMeta { component: "a/b.wasm".to_owned(), http: None };
        assert_eq!(job.interface(), WorkloadInterface::Command);
        assert_eq!(found, BTreeMap::from([("web".to_owned(), web), ("job-2".to_owned(), job)]));
    }

    #[test]
    fn a_workload_is_a_container_of_its_name() {
        let text = |workloads: &str| {
            format!(
                "name: c\nsummary: s\ndescription: d\ncontainers: {{side: {{}}}}\n\
                 x-periapt: {{workloads: {{{workloads}}}}}\n"
            )
        };
        let parse = |workloads: &str| {
            let files = CharmFiles { charmcraft: Some(text(workloads)), ..CharmFiles::default() };
            CharmMeta::parse(&files).map_err(|error| error.to_string())
        };
        let containers = parse("web: {component: web.wasm, http: 8080}").unwrap().containers;
        let found: Vec<_> =
            containers.iter().map(|(name, meta)| (name.as_str(), meta.workload.clone())).collect();
        let web = WorkloadMeta { component: "web.wasm".to_owned(), http: Some(8080) };
        assert_eq!(found, [("side", None), ("web", Some(web))]);
        let many: String = (0..MAX_CONTAINERS).map(|at| format!("a{at}: {{component: x}}, ")).collect();
        let error = parse(&many).unwrap_err();
        assert!(error.contains("17 containers and workloads are declared; at most 16"), "{error}");
    }

    #[test]
    fn a_wrong_declaration_is_one_error_with_its_place() {
        for (declared, message) in [
            ("web: {http: 80}", "workload web: component is missing"),
            ("web: {component: ''}", "workload web: component is missing"),
            ("web: {component: /etc/x}", "workload web: component \"/etc/x\" is no path within the charm"),
            ("web: {component: a/../x}", "workload web: component \"a/../x\" is no path within the charm"),
            (r#"web: {component: "a\eb"}"#, "workload web: component "),
            ("Web: {component: x}", "workload Web: a name has lower-case letters"),
            ("a--b: {component: x}", "workload a--b: a name has lower-case letters"),
            ("web: {component: x, http: 0}", "workload web: http 0 is no port"),
            ("web: {component: x, http: 65536}", "invalid value: integer `65536`"),
            ("web: {component: x, port: 1}", "unknown field `port`"),
            ("a: {component: x, http: 1}, b: {component: x, http: 1}", "two workloads have port 1"),
            ("main: {component: x}", "workload main: a container has this name"),
        ] {
            let text = format!("containers: {{main: {{}}}}\nx-periapt: {{workloads: {{{declared}}}}}\n");
            let error = workloads(&text).unwrap_err();
            let message = format!("metadata.yaml: x-periapt: {message}");
            assert!(error.starts_with(&message), "{declared}: {error}");
        }
        let many: String = (0..=MAX_CONTAINERS).map(|at| format!("a{at}: {{component: x}}, ")).collect();
        let error = workloads(&format!("x-periapt: {{workloads: {{{many}}}}}\n")).unwrap_err();
        assert!(error.ends_with("a charm may have 16 workloads"), "{error}");
        assert!(workloads("x-periapt: {other: 1}\n").unwrap_err().contains("unknown field `other`"));
    }
}
