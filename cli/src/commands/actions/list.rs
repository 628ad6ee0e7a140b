//! `actions`: the actions of an application's charm.

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{ApplicationName, charm::ActionMeta};
use serde_json::Value;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::{Format, OutputArgs, Table, Text},
};

/// List the actions of an application
///
/// With --schema, it shows the schemas of their parameters.
#[derive(Debug, Args)]
#[command(visible_alias = "list-actions")]
#[command(after_help = "Examples:\n  periapt actions mysql\n  periapt actions mysql --schema --format json")]
pub(crate) struct Actions {
    /// The application
    application: ApplicationName,
    /// Show the whole schemas
    #[arg(long)]
    schema: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Actions {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let actions = model.client().actions(&model.selector, &self.application).await?;
        // JSON and YAML show an empty list.
        if actions.is_empty() && self.output.format == Format::Tabular {
            context.say(format_args!("No actions defined for {}.", self.application));
            return Ok(());
        }
        if self.schema {
            // Schemas have no table, so the default format is YAML.
            let schemas: BTreeMap<&String, &Value> =
                actions.iter().map(|(name, action)| (name, &action.params)).collect();
            return self.output.or_yaml().print(context.color, &schemas, |_| String::new());
        }
        let described: BTreeMap<String, String> =
            actions.into_iter().map(|(name, ActionMeta { description, .. })| (name, description)).collect();
        self.output.print(context.color, &described, table)
    }
}

/// Draws the table. Continued lines of a description stand below its first.
fn table(actions: &BTreeMap<String, String>) -> Text {
    let mut table = Table::new(["Action", "Description"]);
    for (name, description) in actions {
        let mut lines = description.trim().lines();
        table.row([name.into(), lines.next().unwrap_or_default().into()]);
        for line in lines {
            table.row(["".into(), line.into()]);
        }
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_drawn_whole() {
        let actions = [("backup", "Saves.\n\nTo a file.\n"), ("restore", "")];
        let actions = actions.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        assert_eq!(
            anstream::adapter::strip_str(&table(&actions)).to_string(),
            "Action   Description\nbackup   Saves.\n\n         To a file.\nrestore\n"
        );
    }
}
