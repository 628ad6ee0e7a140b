//! Settings of an image for the processes in it.

use std::collections::BTreeMap;

use oci_spec::image::Config;
use serde::Serialize;

/// The most entries of a list in a configuration: variables, arguments, labels. Images have tens.
const MAX_ENTRIES: usize = 4096;

/// The most bytes of the environment as JSON: it is part of the order by which a container is made, which is one argument
/// of a program (128 KiB). Images have some hundred bytes.
const MAX_ENVIRONMENT: usize = 48 << 10;

/// The settings that an image has for processes in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ImageSettings {
    /// The first words of its command.
    pub entrypoint: Vec<String>,
    /// The words after the entrypoint, unless others are given.
    pub command: Vec<String>,
    /// The environment, as `KEY=VALUE`, in the image's order.
    pub environment: Vec<String>,
    /// The directory in which the command begins; empty for the root.
    pub working_directory: String,
    /// The user, as `NAME`, `UID` or either with `:GROUP`; empty for root.
    pub user: String,
    /// The ports that its programs serve, such as `8080/tcp`.
    pub ports: Vec<String>,
    /// The directories for data that is to outlive a container.
    pub volumes: Vec<String>,
    /// Labels for programs.
    pub labels: BTreeMap<String, String>,
    /// The signal that ends its command, if it is not SIGTERM.
    pub stop_signal: Option<String>,
}

impl ImageSettings {
    /// Reads the settings of a configuration.
    pub(super) fn of(config: Option<&Config>) -> Result<Self, String> {
        let Some(config) = config else { return Ok(Self::default()) };
        let sorted = |list: &Option<Vec<String>>| {
            let mut list = list.clone().unwrap_or_default();
            list.sort();
            list
        };
        let settings = Self {
            entrypoint: config.entrypoint().clone().unwrap_or_default(),
            command: config.cmd().clone().unwrap_or_default(),
            environment: config.env().clone().unwrap_or_default(),
            working_directory: config.working_dir().clone().unwrap_or_default(),
            user: config.user().clone().unwrap_or_default(),
            ports: sorted(config.exposed_ports()),
            volumes: sorted(config.volumes()),
            labels: config.labels().clone().unwrap_or_default().into_iter().collect(),
            stop_signal: config.stop_signal().clone().filter(|signal| !signal.is_empty()),
        };
        settings.check()?;
        Ok(settings)
    }

    /// Refuses texts that no process can be given.
    pub(crate) fn check(&self) -> Result<(), String> {
        let lists = [
            ("entrypoint", &self.entrypoint),
            ("command", &self.command),
            ("environment", &self.environment),
            ("ports", &self.ports),
            ("volumes", &self.volumes),
        ];
        for (name, list) in lists {
            if list.len() > MAX_ENTRIES {
                return Err(format!("its {name} has more than {MAX_ENTRIES} entries"));
            }
            if list.iter().any(|text| text.contains('\0')) {
                return Err(format!("its {name} has a byte of value 0"));
            }
        }
        let environment = serde_json::to_string(&self.environment).map_or(usize::MAX, |text| text.len());
        if environment > MAX_ENVIRONMENT {
            return Err(format!("its environment has {environment} bytes, and may have {MAX_ENVIRONMENT}"));
        }
        if self.labels.len() > MAX_ENTRIES {
            return Err(format!("it has more than {MAX_ENTRIES} labels"));
        }
        if self.environment.iter().any(|variable| variable.find('=').is_none_or(|at| at == 0)) {
            return Err("its environment has an entry that is not KEY=VALUE".into());
        }
        match self.working_directory.contains('\0') || self.user.contains('\0') {
            true => Err("its working directory or user has a byte of value 0".into()),
            false => Ok(()),
        }
    }
}
