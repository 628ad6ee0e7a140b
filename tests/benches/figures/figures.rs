//! Figures that mean something on any machine: each is measured beside its baseline, turn by turn in the same run.
//!
//! Every benchmark includes this file, measures, and prints its rows; `tools/bench` makes one table of them.

use std::error::Error;

/// What a measurement answers: one sample, in the figure's unit.
pub(crate) type Sample = Result<f64, Box<dyn Error>>;

/// A figure: what is measured, in which unit, and how many samples are taken of either side.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) rounds: usize,
}

impl Figure {
    /// Takes samples of ours and of the baseline by turns, and prints the row: name, unit, the median of each, the
    /// ratio of these, and the quartiles of the ratios of neighbouring samples, with tabs between them.
    ///
    /// The first round warms up caches and does not count.
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

/// The value below which a part of all lies.
fn quantile(values: impl Iterator<Item = f64>, part: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = (last as f64 * part).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}
