//! {name}: sets its greeting as its status.

use periapt_sdk::{ActionEvent, Charm, Config, Error, FromConfig, Result, Status, Unit};

/// The charm; created anew for each hook.
#[derive(Default)]
struct Greeter;

/// The operator's settings.
struct Settings {
    greeting: String,
}

impl FromConfig for Settings {
    fn from_config(config: &Config) -> Result<Self> {
        let greeting: String = config.get("greeting")?;
        if greeting.is_empty() {
            return Err(Status::blocked("option greeting is empty"))?;
        }
        Ok(Self { greeting })
    }
}

impl Charm for Greeter {
    fn config_changed(&mut self, unit: &Unit) -> Result {
        let settings: Settings = unit.config()?;
        unit.set_status(&Status::active(format!("says {}", settings.greeting)))
    }

    fn action(&mut self, unit: &Unit, action: &ActionEvent) -> Result {
        match action.name.as_str() {
            "greet" => greet(unit, action),
            other => Err(Error::new(format!("there is no action {other}"))),
        }
    }
}

fn greet(unit: &Unit, action: &ActionEvent) -> Result {
    let settings: Settings = unit.config()?;
    let whom: String = action.param("whom")?;
    action.log(format!("greeting {whom}"))?;
    action.set("greeting", format!("{}, {whom}!", settings.greeting))
}

periapt_sdk::export!(Greeter);

#[cfg(test)]
mod tests;
