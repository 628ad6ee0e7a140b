//! A charm with a WebAssembly workload: a web server that shows one page.

use periapt_sdk::{
    ActionEvent, Charm, Config, Context as _, Error, Event, FromConfig, Pebble, Result, Status, Unit,
    WorkloadEvent,
};
use serde_json::json;

periapt_sdk::export!(WebPage);

/// The workload, which is also the name of its service.
const WEB: &str = "web";

/// The port that the metadata declares for it.
const PORT: u16 = 8080;

/// The file from which the server reads the text of the page, below its root.
const TEXT: &str = "/page.txt";

#[derive(Default)]
struct WebPage;

struct Settings {
    title: String,
    text: String,
}

impl FromConfig for Settings {
    fn from_config(config: &Config) -> Result<Self> {
        Ok(Self { title: config.get("title")?, text: config.get("text")? })
    }
}

impl Charm for WebPage {
    fn otherwise(&mut self, unit: &Unit, _: &Event) -> Result {
        // Each other event, such as one of a relation, may change what the server is given.
        configure(unit)
    }

    fn stop(&mut self, _: &Unit) -> Result {
        Ok(())
    }

    fn remove(&mut self, _: &Unit) -> Result {
        Ok(())
    }

    fn start(&mut self, unit: &Unit) -> Result {
        unit.open(PORT)
    }

    fn config_changed(&mut self, unit: &Unit) -> Result {
        configure(unit)
    }

    fn upgrade_charm(&mut self, unit: &Unit) -> Result {
        configure(unit)
    }

    fn pebble_ready(&mut self, unit: &Unit, _: &WorkloadEvent) -> Result {
        // The workload has just started, with nothing of what an earlier one was given.
        configure(unit)
    }

    fn update_status(&mut self, unit: &Unit) -> Result {
        report(unit)
    }

    fn action(&mut self, unit: &Unit, event: &ActionEvent) -> Result {
        if event.name != "page" {
            return Err(Error::new(format!("there is no action {:?}", event.name)));
        }
        event.set("page", page(unit)?)
    }
}

/// Tells related units where the server shows its numbers, gives the server its configuration, and restarts it if that
/// needs a restart.
fn configure(unit: &Unit) -> Result {
    for relation in unit.relations("metrics") {
        relation.unit_bag().set("port", PORT)?;
    }
    let settings: Settings = unit.config()?;
    let web = unit.pebble(WEB);
    if let Err(error) = web.boot_id() {
        // The charm is told when it is ready.
        return unit.set_status(&Status::waiting(error.to_string()));
    }
    // The server reads the file for each request.
    web.push(TEXT, &settings.text)?;
    web.add_layer("charm", &layer(&settings.title, &stores(unit)?))?;
    if let Err(error) = web.replan() {
        return unit.set_status(&Status::blocked(error.to_string()));
    }
    report(unit)
}

/// Returns the places of the servers that have notes, separated by spaces: their names, as in Kubernetes, and ports.
fn stores(unit: &Unit) -> Result<String> {
    let Some(notes) = unit.relation("notes") else { return Ok(String::new()) };
    let mut places = Vec::new();
    for member in notes.members()? {
        if let Some(port) = notes.member_bag(&member).get::<u16>("port")? {
            places.push(format!("{}:{port}", member.replace('/', "-")));
        }
    }
    Ok(places.join(" "))
}

/// Returns a layer over the service that the workload has from its start.
fn layer(title: &str, stores: &str) -> String {
    // JSON is YAML, and quotes what the title contains.
    json!({
        "services": { WEB: { "override": "merge", "environment": { "TITLE": title, "NOTES": stores } } },
        "checks": {
            "page": {
                "override": "replace",
                "period": "10s",
                "http": { "url": format!("http://localhost:{PORT}/") },
            },
        },
    })
    .to_string()
}

/// Sets the status by what the server answers.
fn report(unit: &Unit) -> Result {
    let status = match page(unit) {
        Ok(page) => Status::active(page.lines().next().unwrap_or_default()),
        Err(error) => Status::waiting(format!("{error}{}", service(&unit.pebble(WEB)))),
    };
    unit.set_status(&status)
}

/// Returns the state of the service, if it does not run.
fn service(web: &Pebble) -> String {
    let services = web.services().unwrap_or_default();
    let stopped = services.iter().find(|service| service.name == WEB && !service.is_running());
    stopped.map(|service| format!(" (service {WEB}: {})", service.current)).unwrap_or_default()
}

/// Fetches the page.
fn page(unit: &Unit) -> Result<String> {
    let page = unit.workload_page(PORT, "/").context("fetching the page")?;
    match page.is_success() {
        true => Ok(page.text()),
        false => Err(Error::new(format!("the server answers with status {}", page.status))),
    }
}

#[cfg(test)]
mod tests;
