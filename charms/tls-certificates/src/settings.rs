//! The operator's settings.

use periapt_sdk::{Config, Context, Error, FromConfig, Result, Rotate};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How short and how long a certificate may be valid: seconds are for those who want to see one change, and an authority
/// is not valid for more than ten years.
const LIFETIMES: RangeInclusive<Duration> = Duration::from_secs(3)..=Duration::from_secs(825 * 24 * 3_600);

pub(crate) struct Settings {
    /// How long a certificate is valid.
    pub(crate) lifetime: Duration,
    /// How often there is a new authority.
    pub(crate) rotation: Rotate,
}

impl Settings {
    /// How long after it was made a certificate is replaced: while a third of its life is left.
    pub(crate) fn renew_after(&self) -> Duration {
        self.lifetime * 2 / 3
    }
}

impl FromConfig for Settings {
    fn from_config(config: &Config) -> Result<Self> {
        let text: String = config.get("lifetime")?;
        let at = || format!("option lifetime is \"{text}\", expected 3s to 825d");
        let lifetime = humantime::parse_duration(&text).context(at())?;
        if !LIFETIMES.contains(&lifetime) {
            return Err(Error::new(at()));
        }
        Ok(Self { lifetime, rotation: rotation(&config.get::<String>("ca-rotation")?)? })
    }
}

fn rotation(text: &str) -> Result<Rotate> {
    Ok(match text {
        "never" => Rotate::Never,
        "hourly" => Rotate::Hourly,
        "daily" => Rotate::Daily,
        "weekly" => Rotate::Weekly,
        "monthly" => Rotate::Monthly,
        "quarterly" => Rotate::Quarterly,
        "yearly" => Rotate::Yearly,
        _ => {
            let known = "never, hourly, daily, weekly, monthly, quarterly or yearly";
            return Err(Error::new(format!("option ca-rotation is \"{text}\", expected {known}")));
        }
    })
}
