//! The outputs of commands and their stored form.

use periapt_host_api::{UnitName, command::Answer};

use super::entity::{KeptOutput, UnitRange};
use crate::input::Output;

impl UnitRange {
    /// Returns the range of these units, or none if there are no units or their numbers are not successive.
    fn of(units: &[UnitName]) -> Option<Self> {
        let first = units.first()?;
        let range = Self { first: first.clone(), count: u32::try_from(units.len()).ok()? };
        (range.units().len() == units.len() && range.units().iter().eq(units)).then_some(range)
    }

    fn units(&self) -> Vec<UnitName> {
        let first = self.first.number();
        let numbers = first..first.saturating_add(self.count);
        numbers.map(|number| UnitName::new(self.first.application().clone(), number)).collect()
    }
}

impl KeptOutput {
    /// Returns the stored form of a command's output. Sessions that a login opens and the answers to runners are not
    /// kept: their requests carry no id.
    pub(crate) fn of(output: &Output) -> Option<Self> {
        match output {
            Output::Done => Some(Self::Done),
            Output::Answer(answer) => Some(Self::of_answer(answer)),
            Output::Session(_) | Output::Runner(_) => None,
        }
    }

    fn of_answer(answer: &Answer) -> Self {
        let compact = match answer {
            Answer::Units { units } => UnitRange::of(units).map(Self::Units),
            Answer::Application { name, units } => {
                UnitRange::of(units).map(|units| Self::Application { name: name.clone(), units })
            }
            _ => None,
        };
        compact.unwrap_or_else(|| Self::Answer(answer.clone()))
    }

    /// Returns the command's output.
    pub fn output(&self) -> Output {
        Output::Answer(match self {
            Self::Done => return Output::Done,
            Self::Units(range) => Answer::Units { units: range.units() },
            Self::Application { name, units } => {
                Answer::Application { name: name.clone(), units: units.units() }
            }
            Self::Answer(answer) => answer.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::size;

    use super::*;

    fn round(answer: Answer) -> (KeptOutput, bool) {
        let output = Output::Answer(answer);
        let kept = KeptOutput::of(&output).unwrap();
        let same = kept.output() == output;
        (kept, same)
    }

    #[test]
    fn the_answer_about_ten_thousand_units_takes_little_and_is_the_same() {
        let unit = |number| UnitName::new("app".parse().unwrap(), number);
        let units: Vec<_> = (7..10_007).map(unit).collect();
        let (kept, same) = round(Answer::Units { units: units.clone() });
        assert!(same && size::of_json(&kept) < 100, "{kept:?}");
        let (kept, same) = round(Answer::Application { name: "app".parse().unwrap(), units });
        assert!(same && size::of_json(&kept) < 150, "{kept:?}");
        for numbers in [vec![], vec![1, 3], vec![2, 1], vec![u32::MAX]] {
            let units = numbers.into_iter().map(unit).collect();
            let (kept, same) = round(Answer::Units { units });
            assert!(same, "{kept:?}");
        }
    }
}
