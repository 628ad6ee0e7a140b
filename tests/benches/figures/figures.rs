//! Relative figures, which mean the same on any machine: each run measures both sides by turns.
//!
//! Every benchmark includes this file and prints its rows, of which `tools/bench` makes one table.

use std::error::Error;

/// One sample, in the figure's unit.
pub(crate) type Sample = Result<f64, Box<dyn Error>>;

/// A figure: its name, its unit, and the number of samples of each side.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) rounds: usize,
}

impl Figure {
    /// Takes samples of both sides by turns and prints the row, with tabs between the fields: name, unit, both
    /// medians, their ratio, and the quartiles of the ratios of neighbouring samples.
    ///
    /// The first round only warms up caches.
    pub(crate) fn measure(
        &self,
        mut ours: impl FnMut() -> Sample,
        mut baseline: impl FnMut() -> Sample,
    ) -> Result<(), Box<dyn Error>> {
        let mut samples = Vec::with_capacity(self.rounds);
        for round in 0..=self.rounds {
            let pair = (ours()?, baseline()?);
            if round > 0 {
                samples.push(pair);
            }
        }
        let ours = quantile(samples.iter().map(|(ours, _)| *ours), 0.5);
        let baseline = quantile(samples.iter().map(|(_, baseline)| *baseline), 0.5);
        let ratios = || samples.iter().map(|(ours, baseline)| ours / baseline);
        let (low, high) = (quantile(ratios(), 0.25), quantile(ratios(), 0.75));
        let (name, unit, ratio) = (self.name, self.unit, ours / baseline);
        println!("{name}\t{unit}\t{ours}\t{baseline}\t{ratio}\t{low}\t{high}");
        Ok(())
    }
}

/// Returns a quantile; `part` is between 0 and 1.
fn quantile(values: impl Iterator<Item = f64>, part: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = (last as f64 * part).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}
