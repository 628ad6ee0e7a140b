//! The operator's settings.

use periapt_sdk::{Config, Context, Error, FromConfig, Result, Rotate};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The bounds of a certificate's validity. Seconds are for trying out renewals, and an authority is valid for ten
/// years at most.
const LIFETIMES: RangeInclusive<Duration> = Duration::from_secs(3)..=Duration::from_secs(825 * 24 * 3_600);

pub(crate) struct Settings {
    /// The validity of a certificate.
    pub(crate) lifetime: Duration,
    /// The rotation policy of the authority.
    pub(crate) rotation: Rotate,
}

impl Settings {
    /// Returns the age at which a certificate is replaced: two thirds of its validity.
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
