//! The line to complete, which names the model, the controller and the unit.

use std::env;

use crate::context::{ModelArg, ModelRef};

/// The words of the line, the program's name first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Returns the words after `--`, where a shell puts them.
    pub(super) fn of_this_process() -> Self {
        let words = env::args_os().map(|word| word.to_string_lossy().into_owned());
        Self(words.skip_while(|word| word != "--").skip(1).collect())
    }

    /// Returns the model that the line names, if any.
    pub(super) fn model(&self) -> ModelArg {
        let after = |at: usize| self.0.get(at + 1).cloned();
        let named = self.0.iter().enumerate().find_map(|(at, word)| match word.as_str() {
            "-m" | "--model" => after(at),
            word => word.strip_prefix("--model=").or_else(|| word.strip_prefix("-m")).map(str::to_owned),
        });
        ModelArg { model: named.and_then(|text| text.parse::<ModelRef>().ok()) }
    }

    /// Returns the controller that the line names.
    pub(super) fn controller(&self) -> Option<String> {
        let mut words = self.0.iter();
        words.find(|word| matches!(word.as_str(), "-c" | "--controller"))?;
        words.next().cloned()
    }

    /// Returns the first unit on the line, whose actions are completed.
    pub(super) fn unit(&self) -> Option<&str> {
        let is_unit = |word: &&String| {
            let unit = word.split_once('/').filter(|(application, _)| !application.is_empty());
            unit.is_some_and(|(_, number)| number == "leader" || number.parse::<u32>().is_ok())
        };
        self.0.iter().skip(1).find(is_unit).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Words {
        Words(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn a_line_says_which_model_and_which_unit_it_is_about() {
        let model = |line: &str| words(line).model().model.map(|model| model.model.to_string());
        for line in [
            "periapt run -m blog mysql/0",
            "periapt run mysql/0 --model blog",
            "periapt run --model=blog",
            "periapt run -mblog",
        ] {
            assert_eq!(model(line).as_deref(), Some("blog"), "{line}");
        }
        assert_eq!(words("periapt run -m blog mysql/0 ").unit(), Some("mysql/0"));
        assert_eq!(words("periapt run mysql/leader ba").unit(), Some("mysql/leader"));
        assert_eq!(words("./periapt deploy ./mysql").unit(), None);
        assert_eq!(words("periapt models -c staging").controller().as_deref(), Some("staging"));
    }
}
