//! A charm that attacks its sandbox. The option `mode` selects the attack.

#[macro_use]
#[path = "../catalogue.rs"]
mod catalogue;
mod guests;

use periapt_sdk::{Charm, Config, Error, Event, FromConfig, Result, Unit};

periapt_sdk::export!(Hostile);

#[derive(Default)]
struct Hostile;

struct Settings {
    mode: String,
}

impl FromConfig for Settings {
    fn from_config(config: &Config) -> Result<Self> {
        Ok(Self { mode: config.get::<Option<String>>("mode")?.unwrap_or_default() })
    }
}

impl Charm for Hostile {
    fn otherwise(&mut self, unit: &Unit, _: &Event) -> Result {
        let settings: Settings = unit.config()?;
        if settings.mode.is_empty() { Ok(()) } else { run(&settings.mode, unit) }
    }
}

macro_rules! dispatch {
    ($($name:ident)*) => {
        fn run(mode: &str, unit: &Unit) -> Result {
            match mode {
                $(stringify!($name) => guests::$name(unit),)*
                _ => Err(Error::new(format!("no mode \"{mode}\" in the catalogue"))),
            }
        }
    };
}
hostile_modes!(dispatch);

macro_rules! modules_exist {
    ($($name:ident: $file:literal)*) => {
        $(const _: &str = include_str!(concat!("../", $file));)*
    };
}
hostile_modules!(modules_exist);

#[cfg(test)]
mod tests {
    use super::Hostile;
    use periapt_sdk::testing::Harness;
    use periapt_sdk::{Event, Outcome};

    #[test]
    fn it_is_harmless_without_a_mode_and_refuses_unknown_ones() {
        let mut unit = Harness::<Hostile>::new("hostile/0");
        assert_eq!(unit.run(Event::Install), Ok(Outcome::Handled));
        let failure = unit.config("mode", "polite").run(Event::Start).unwrap_err();
        assert_eq!(failure.message, "no mode \"polite\" in the catalogue");
    }
}
