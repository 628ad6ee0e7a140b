//! The command line: what can be asked for.

use clap::{Parser, Subcommand};

use crate::{commands, output::ColorChoice};

/// Juju's model for charms that you did not write and do not trust: their hooks run in a sandbox.
#[derive(Debug, Parser)]
#[command(name = "periapt", bin_name = "periapt", version, max_term_width = 110, after_help = FIRST_STEPS)]
pub(crate) struct Cli {
    /// Colour the output; always, if it is not said when
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL,
        value_enum,
        default_value = "auto",
        default_missing_value = "always",
        num_args = 0..=1,
        require_equals = true,
        value_name = "WHEN"
    )]
    color: ColorChoice,
    /// Do not colour the output
    #[arg(long, global = true, help_heading = GLOBAL, conflicts_with = "color")]
    no_color: bool,
    /// Say only what was asked for
    #[arg(short, long, global = true, help_heading = GLOBAL, conflicts_with_all = ["verbose", "debug"])]
    pub(crate) quiet: bool,
    /// Say more of what is going on
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) verbose: bool,
    /// Say all of it
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) debug: bool,
    /// The same as --verbose
    #[arg(long, global = true, help_heading = GLOBAL, conflicts_with = "quiet")]
    pub(crate) show_log: bool,
    /// Taken for Juju's sake: nobody logs in by a browser
    #[arg(short = 'B', long, global = true, hide = true)]
    no_browser_login: bool,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Under what all commands' options stand.
const GLOBAL: &str = "Global options";

const FIRST_STEPS: &str = "\
First steps:
  periapt bootstrap                      a controller and an agent on this machine
  periapt add-model blog
  periapt deploy ./mysql.charm
  periapt deploy ./wordpress.charm -n 3
  periapt integrate wordpress mysql
  periapt status --watch 1s

Exit codes: 0 it was done, 1 it failed or was refused, 2 the command line makes no sense, 128+N signal N ended it.
Environment: PERIAPT_DATA, PERIAPT_CONTROLLER, PERIAPT_MODEL, PERIAPT_LOG (such as periapt_agent=debug), NO_COLOR.
Grammar: of an option that is given twice the last counts, unless it is a list; a flag takes =true and =false.
Completion: `periapt completion SHELL` prints what makes a shell ask for commands, options and names.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    // Controllers.
    Bootstrap(commands::bootstrap::Bootstrap),
    /// Run a controller, or start one again that was bootstrapped here
    #[command(subcommand)]
    Controller(commands::controller::Controller),
    #[command(visible_alias = "list-controllers")]
    Controllers(commands::controllers::Controllers),
    ShowController(commands::show::ShowController),
    DestroyController(commands::destroy_controller::DestroyController),
    KillController(commands::destroy_controller::KillController),
    Unregister(commands::unregister::Unregister),
    /// Run an agent
    #[command(subcommand)]
    Agent(commands::agent::Agent),
    Agents(commands::agents::Agents),

    // Models.
    AddModel(commands::model::AddModel),
    #[command(visible_alias = "list-models")]
    Models(commands::model::Models),
    Switch(commands::switch::Switch),
    Whoami(commands::whoami::Whoami),
    #[command(visible_alias = "list-users")]
    Users(commands::users::Users),
    ShowUser(commands::users::ShowUser),
    DestroyModel(commands::model::DestroyModel),
    ModelConfig(commands::model_config::ModelConfig),
    #[command(visible_alias = "model-default")]
    ModelDefaults(commands::model_defaults::ModelDefaults),
    ShowModel(commands::show::ShowModel),
    ModelConstraints(commands::constraints::ModelConstraints),
    SetModelConstraints(commands::constraints::SetModelConstraints),

    // Applications.
    Deploy(commands::deploy::Deploy),
    ExportBundle(commands::bundle::ExportBundle),
    Refresh(commands::refresh::Refresh),
    Config(commands::config::Config),
    Trust(commands::config::Trust),
    Constraints(commands::constraints::Constraints),
    SetConstraints(commands::constraints::SetConstraints),
    AddUnit(commands::units::AddUnit),
    RemoveUnit(commands::units::RemoveUnit),
    RemoveApplication(commands::units::RemoveApplication),
    Expose(commands::expose::Expose),
    Unexpose(commands::expose::Unexpose),
    Bind(commands::spaces::Bind),
    #[command(visible_alias = "list-spaces")]
    Spaces(commands::spaces::Spaces),
    #[command(visible_alias = "list-subnets")]
    Subnets(commands::spaces::Subnets),
    AddSpace(commands::spaces::AddSpace),
    MoveToSpace(commands::spaces::MoveToSpace),
    ShowSpace(commands::spaces::ShowSpace),
    RenameSpace(commands::spaces::RenameSpace),
    RemoveSpace(commands::spaces::RemoveSpace),
    #[command(visible_alias = "relate")]
    Integrate(commands::integrate::Integrate),
    RemoveRelation(commands::integrate::RemoveRelation),
    SuspendRelation(commands::offers::SuspendRelation),
    ResumeRelation(commands::offers::ResumeRelation),
    Offer(commands::offers::Offer),
    #[command(visible_alias = "list-offers")]
    Offers(commands::offers::Offers),
    ShowOffer(commands::offers::ShowOffer),
    FindOffers(commands::offers::FindOffers),
    RemoveOffer(commands::offers::RemoveOffer),
    Consume(commands::offers::Consume),
    #[command(visible_alias = "remove-consumed-application")]
    RemoveSaas(commands::offers::RemoveSaas),
    #[command(visible_alias = "list-machines")]
    Machines(commands::machines::Machines),
    ShowMachine(commands::show::ShowMachine),
    RemoveMachine(commands::machines::RemoveMachine),
    RetryProvisioning(commands::retry_provisioning::RetryProvisioning),
    #[command(visible_alias = "list-storage")]
    Storage(commands::storage::Storage),
    #[command(visible_alias = "list-storage-pools")]
    StoragePools(commands::storage::StoragePools),
    ShowStorage(commands::storage::ShowStorage),
    AddStorage(commands::storage::AddStorage),
    AttachStorage(commands::storage::AttachStorage),
    DetachStorage(commands::storage::DetachStorage),
    RemoveStorage(commands::storage::RemoveStorage),

    // Resources.
    AttachResource(commands::resources::AttachResource),
    Resources(commands::resources::Resources),

    // Actions.
    #[command(visible_alias = "list-actions")]
    Actions(commands::action::Actions),
    ShowAction(commands::action::ShowAction),
    Run(commands::action::Run),
    Exec(commands::action::Exec),
    #[command(visible_alias = "list-operations")]
    Operations(commands::action::Operations),
    ShowOperation(commands::action::ShowOperation),
    ShowTask(commands::action::ShowTask),
    CancelTask(commands::action::CancelTask),

    // Secrets.
    AddSecret(commands::secrets::AddSecret),
    UpdateSecret(commands::secrets::UpdateSecret),
    GrantSecret(commands::secrets::GrantSecret),
    RevokeSecret(commands::secrets::RevokeSecret),
    RemoveSecret(commands::secrets::RemoveSecret),
    Secrets(commands::secrets::Secrets),
    ShowSecret(commands::secrets::ShowSecret),

    // What is.
    Status(commands::status::Status),
    ShowUnit(commands::show::ShowUnit),
    ShowApplication(commands::show::ShowApplication),
    ShowStatusLog(commands::show_status_log::ShowStatusLog),
    Hooks(commands::hooks::Hooks),
    Usage(commands::usage::Usage),
    DebugLog(commands::debug_log::DebugLog),
    WaitFor(commands::wait_for::WaitFor),
    #[command(visible_alias = "resolve")]
    Resolved(commands::resolved::Resolved),
    CancelEvent(commands::cancel_event::CancelEvent),

    // What is kept for Juju's clients, and has no effect.
    #[command(visible_alias = "list-clouds")]
    Clouds(commands::clouds::Clouds),
    ShowCloud(commands::clouds::ShowCloud),
    AddCloud(commands::clouds::AddCloud),
    UpdateCloud(commands::clouds::UpdateCloud),
    RemoveCloud(commands::clouds::RemoveCloud),
    #[command(visible_alias = "list-credentials")]
    Credentials(commands::credentials::Credentials),
    #[command(visible_alias = "show-credentials")]
    ShowCredential(commands::credentials::ShowCredential),
    AddCredential(commands::credentials::AddCredential),
    RemoveCredential(commands::credentials::RemoveCredential),
    SshKeys(commands::ssh_keys::SshKeys),
    AddSshKey(commands::ssh_keys::AddSshKey),
    RemoveSshKey(commands::ssh_keys::RemoveSshKey),

    // Charms, and this program.
    Init(commands::init::Init),
    Pack(commands::pack::Pack),
    TryHook(commands::try_hook::TryHook),
    #[command(visible_alias = "help-tool")]
    #[command(visible_aliases = ["hook-tool", "hook-tools"])]
    HelpHookCommands(commands::action::HelpHookCommands),
    HelpActionCommands(commands::action::HelpActionCommands),
    Documentation(commands::documentation::Documentation),
    Completion(commands::completion::Completion),
    Version(commands::version::Version),
}

impl Cli {
    /// Whether output is coloured.
    pub(crate) fn color(&self) -> ColorChoice {
        match self.no_color {
            true => ColorChoice::Never,
            false => self.color,
        }
    }
}

impl Command {
    /// Whether it runs until somebody ends it.
    pub(crate) fn is_service(&self) -> bool {
        matches!(
            self,
            Self::Controller(commands::controller::Controller::Run(_))
                | Self::Agent(commands::agent::Agent::Run(_))
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::grammar;

    /// The commands in a text that shows their use, as words, without prompts and comments.
    fn examples(text: &str) -> Vec<Vec<String>> {
        let lines = text.lines().map(str::trim).map(|line| line.strip_prefix("$ ").unwrap_or(line));
        lines
            .filter(|line| line.starts_with("periapt "))
            .map(|line| {
                line.split_once(" # ").or_else(|| line.split_once("   ")).map_or(line, |(code, _)| code)
            })
            .map(words)
            .collect()
    }

    /// Words between blanks, but for those in single quotes.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (index, part) in line.split('\'').enumerate() {
            match index % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    fn check(text: &str) -> usize {
        let examples = examples(text);
        for example in &examples {
            if let Err(error) = grammar::read(example) {
                assert!(error.exit_code() == 0, "{}: {error}", example.join(" "));
            }
        }
        examples.len()
    }

    /// Of a command and all below it.
    fn check_help(command: &clap::Command) -> usize {
        let own = command.get_after_help().map_or(0, |help| check(&help.to_string()));
        own + command.get_subcommands().map(check_help).sum::<usize>()
    }

    #[test]
    fn each_example_in_a_help_text_and_in_the_readme_is_a_command() {
        let count = check_help(&Cli::command());
        assert!(count > 30, "{count} examples found");
        let readme = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
        let readme = std::fs::read_to_string(readme).unwrap();
        assert!(check(&readme) > 3, "the README shows no use");
        assert!(grammar::read(&examples("periapt no-such-command")[0]).is_err());
    }

    #[test]
    fn colours_are_asked_for_and_refused_in_jujus_way_too() {
        let color =
            |words: &[&str]| grammar::read(&[&["periapt"], words].concat()).map(|cli| cli.color()).ok();
        assert_eq!(color(&["status"]), Some(ColorChoice::Auto));
        assert_eq!(color(&["status", "--color", "mysql"]), Some(ColorChoice::Always));
        assert_eq!(color(&["--color=never", "status"]), Some(ColorChoice::Never));
        assert_eq!(color(&["status", "--no-color"]), Some(ColorChoice::Never));
        assert_eq!(color(&["status", "--no-color", "--color"]), None);
    }

    #[test]
    fn a_model_is_named_before_and_after_what_a_command_is_about() {
        let command = Cli::command();
        let of_models = |command: &&clap::Command| {
            command.get_arguments().any(|arg| arg.get_id() == "model" && arg.get_short() == Some('m'))
        };
        let commands: Vec<_> =
            command.get_subcommands().filter(of_models).map(clap::Command::get_name).collect();
        assert!(commands.len() > 50, "{commands:?}");
        for line in [
            &["status", "mysql"][..],
            &["config", "mysql", "a=b"],
            &["run", "mysql/0", "act", "a=b"],
            &["deploy", "./mysql"],
        ] {
            let (verb, rest) = line.split_first().unwrap();
            for option in [&["-m", "blog"][..], &["--model", "blog"], &["--model=blog"]] {
                let before = ["periapt", verb].iter().chain(option).chain(rest).copied().collect::<Vec<_>>();
                let after = ["periapt", verb].iter().chain(rest).chain(option).copied().collect::<Vec<_>>();
                assert!(grammar::read(&before).is_ok(), "{before:?}");
                assert!(grammar::read(&after).is_ok(), "{after:?}");
            }
        }
    }

    #[test]
    fn whatever_has_forms_goes_into_a_file_as_well() {
        // A log and a status go on, and tell each form as it comes.
        let streams = ["debug-log", "documentation"];
        for command in Cli::command().get_subcommands() {
            let has = |id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
            let excepted = streams.contains(&command.get_name());
            assert!(!has("format") || has("output") || excepted, "{} has no --output", command.get_name());
        }
    }

    #[test]
    fn each_command_says_what_it_does() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{} says nothing", command.get_name());
        }
    }
}
