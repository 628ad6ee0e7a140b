//! A charm that tests drive: it logs every event and does as its script says (see its README).

mod books;
mod context;
mod script;
mod secrets;
mod workloads;

use periapt_sdk::{
    ActionEvent, Charm, Config, Context, Error, Event, FromConfig, GoalRelation, GoalStatus, Ports, Relation,
    Result, Rotate, Status, Unit, info, tool,
};
use script::{Action, Word, parse};

periapt_sdk::export!(Probe);

#[derive(Default)]
struct Probe;

/// A charm without handlers.
#[derive(Default)]
struct Silent;

impl Charm for Silent {}

struct Settings {
    script: String,
    count: bool,
    ledger: bool,
}

impl FromConfig for Settings {
    fn from_config(config: &Config) -> Result<Self> {
        Ok(Self {
            script: config.get::<Option<String>>("script")?.unwrap_or_else(beside_the_charm),
            count: config.get::<Option<bool>>("count")?.unwrap_or_default(),
            ledger: config.get::<Option<bool>>("ledger")?.unwrap_or_default(),
        })
    }
}

/// Reads the script of a test that cannot set the charm's options.
fn beside_the_charm() -> String {
    std::fs::read_to_string("/charm/script").unwrap_or_default()
}

impl Charm for Probe {
    /// Handles `greet` through typed calls. All other actions run the script.
    fn action(&mut self, unit: &Unit, event: &ActionEvent) -> Result {
        if event.name != "greet" {
            return self.otherwise(unit, &Event::Action(event.clone()));
        }
        let (whom, times): (String, i64) = (event.param("whom")?, event.param("times")?);
        event.log(format_args!("greeting {whom}"))?;
        event.set("greeting.text", format_args!("hello {whom}"))?;
        event.set("greeting.times", times)?;
        if times == 0 {
            event.fail("nobody was greeted")?;
        }
        println!("done");
        Ok(())
    }

    fn otherwise(&mut self, unit: &Unit, event: &Event) -> Result {
        info!("{} attempt={}", context::line(event), unit.attempt());
        let settings: Settings = unit.config()?;
        if settings.count {
            books::count(unit)?;
        }
        if settings.ledger {
            books::enter(unit, event)?;
        }
        for step in parse(&settings.script)? {
            if step.event == "*" || step.event == event.hook_name() {
                perform(&step.action, unit, event)?;
            }
        }
        Ok(())
    }
}

fn perform(action: &Action, unit: &Unit, event: &Event) -> Result {
    match action {
        Action::Fail(message) => Err(Error::new(message.as_str())),
        #[expect(clippy::panic, reason = "the script asks for it")]
        Action::Panic(message) => panic!("{message}"),
        Action::Unhandled => Charm::otherwise(&mut Silent, unit, event),
        Action::Trap => trap(),
        Action::Loop => loop {
            std::hint::spin_loop();
        },
        Action::Tool(name, args) => {
            let output = tool(name, args.clone());
            info!("tool {name}: {} {} {}", output.code, output.stdout.trim_end(), output.stderr.trim_end());
            Ok(())
        }
        Action::Set(key, value) => {
            relations(unit, event).iter().try_for_each(|relation| relation.unit_bag().set(key, value))
        }
        Action::AppSet(key, value) => {
            relations(unit, event).iter().try_for_each(|relation| relation.app_bag().set(key, value))
        }
        Action::Store(key, value) => unit.state().set(key, value),
        Action::Status(word, message) => unit.set_status(&status(*word, message)),
        Action::AppStatus(word, message) => unit.set_app_status(&status(*word, message)),
        Action::Stop(word, message) => Err(status(*word, message).into()),
        Action::OpenPort(ports) => unit.open(ports.parse::<Ports>()?),
        Action::ClosePort(ports) => unit.close(ports.parse::<Ports>()?),
        Action::Emit(text) => {
            println!("{text}");
            Ok(())
        }
        Action::Complain(text) => {
            eprintln!("{text}");
            Ok(())
        }
        Action::Goal => {
            let goal = unit.goal_state();
            let names = |named: &[(String, GoalStatus)]| {
                named.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",")
            };
            let related =
                |relation: &GoalRelation| format!(" {}={}", relation.endpoint, names(&relation.units));
            let relations: String = goal.relations.iter().map(related).collect();
            info!("goal units={}{relations}", names(&goal.units));
            Ok(())
        }
        Action::Write(path, content) => std::fs::write(path, content).context(format!("writing {path}")),
        Action::Read(path) => {
            let content = std::fs::read_to_string(path).unwrap_or_else(|error| error.kind().to_string());
            info!("read {path}: {content}");
            Ok(())
        }
        Action::Resource(name) => {
            let resource = unit.resource(name)?;
            let content = std::fs::read(resource.path()).context("reading the resource")?;
            let text: String = String::from_utf8_lossy(&content).chars().take(40).collect();
            let (path, revision, size) = (resource.path().display(), resource.revision(), resource.size());
            let sha256 = resource.sha256();
            info!(
                "resource {path} revision={revision} size={size} sha256={sha256} read={}: {text}",
                content.len()
            );
            Ok(())
        }
        Action::Push { container, path, resource } => workloads::push(unit, container, path, resource),
        Action::Shell { container, milliseconds, script } => {
            workloads::shell(unit, container, *milliseconds, script);
            Ok(())
        }
        Action::Ask { target, method, path, body } => workloads::ask(unit, target, method, path, body),
        Action::Log(text) => {
            info!("{text}");
            Ok(())
        }
        Action::Share(key, value) => secrets::share(unit, event, key, value),
        Action::Revise(key, value) => secrets::revise(unit, key, value),
        Action::Expire(time) => unit.secret_labelled(secrets::LABEL)?.change().expire(time.as_str()).apply(),
        Action::Rotate => unit.secret_labelled(secrets::LABEL)?.change().rotate(Rotate::Hourly).apply(),
        Action::Prune => secrets::prune(event),
        Action::Open => secrets::open(event),
        Action::OpenToken => secrets::open_token(unit),
    }
}

fn relations(unit: &Unit, event: &Event) -> Vec<Relation> {
    match event.relation() {
        Some(relation) => vec![relation.clone()],
        None => ["db", "sink", "desk", "tally", "peer"]
            .iter()
            .flat_map(|endpoint| unit.relations(endpoint))
            .collect(),
    }
}

fn status(word: Word, message: &str) -> Status {
    match word {
        Word::Active => Status::active(message),
        Word::Blocked => Status::blocked(message),
        Word::Waiting => Status::waiting(message),
        Word::Maintenance => Status::maintenance(message),
    }
}

#[cfg(target_arch = "wasm32")]
fn trap() -> Result {
    std::arch::wasm32::unreachable()
}

#[cfg(not(target_arch = "wasm32"))]
fn trap() -> Result {
    Err(Error::new("only a sandbox can trap"))
}

#[cfg(test)]
mod tests;
