//! Secrets that are planted through the product, and looked for wherever it writes.

use std::{fs, path::Path};

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use periapt_client::{Client, Identity, Options, Trust};
use periapt_host_api::{
    access::ModelAccess,
    password::Password,
    token::Token,
    user::{NewApiToken, NewUser, PasswordLogin, TokenScope, UseRegistration},
};
use periapt_tests::{Installation, Part, parts};

/// A user's password, and one that a login is refused with.
const PASSWORD: &str = "planted password 5711";
const WRONG_PASSWORD: &str = "mistaken password 5712";
/// The content of an operator's secret and of a charm's. The charm's script has the latter backwards.
const OPERATORS_SECRET: &str = "operators-needle-5713";
const CHARMS_SECRET: &str = "charms-needle-5714";
/// A text that is no secret, which shows that the search finds what is there.
const CONTROL: &str = "control-needle-5715";

/// A text that must stand nowhere, under the name that a failure gives it.
type Planted = (&'static str, String);

/// Has a user register, log in, fail to log in and make a token. Returns what was planted.
async fn users(periapt: &Installation) -> anyhow::Result<Vec<Planted>> {
    let url = format!("unix://{}", periapt.socket("local").display());
    let operator = Client::new(Options::new(url, Identity::Local))?;
    let authority = periapt.path().join("data/controllers/local/controller/ca.pem");
    let trust =
        Trust::Authority(fs::read_to_string(&authority).with_context(|| authority.display().to_string())?);
    let listing = fs::read_to_string(periapt.path().join("data/client.json"))?;
    let listing: serde_json::Value = serde_json::from_str(&listing)?;
    let url =
        listing.pointer("/controllers/local/url").and_then(serde_json::Value::as_str).context("a URL")?;
    let over_tls = |identity| Client::new(Options::new(url, identity).with_trust(trust.clone()));

    let user = NewUser { name: "jane".parse()?, display_name: "Jane".to_owned() };
    let registration = operator.add_user(&user).await?.token;
    let password = |text: &str| Password::try_from(text.to_owned());
    let used = UseRegistration { token: registration.clone(), password: password(PASSWORD)? };
    let stranger = over_tls(Identity::Local)?;
    let session = stranger.register_user(&used).await?.token;
    let again = stranger.register_user(&used).await;
    ensure!(again.is_err(), "a registration is used once: {again:?}");
    let mistaken = PasswordLogin { user: "jane".parse()?, password: password(WRONG_PASSWORD)? };
    let refused = stranger.log_in(&mistaken).await;
    let refusal = refused.err().context("a wrong password is refused")?.to_string();
    ensure!(!refusal.contains(WRONG_PASSWORD), "{refusal}");
    let jane = over_tls(Identity::Token(session.clone()))?;
    let scope = TokenScope { access: ModelAccess::Read, models: Vec::new() };
    let api = NewApiToken { name: "ci".to_owned(), scope, lifetime_seconds: 600 };
    let api = jane.make_token(&api).await?.token;
    over_tls(Identity::Token(api.clone()))?.models().await?;
    let ended = over_tls(Identity::Token(Token::new(session.kind(), [7; 32])))?.whoami().await;
    ensure!(ended.is_err(), "an unknown token is refused: {ended:?}");
    Ok(vec![
        ("the registration token", registration.reveal()),
        ("the session token", session.reveal()),
        ("the API token", api.reveal()),
        ("the password", PASSWORD.to_owned()),
        ("the password of a refused login", WRONG_PASSWORD.to_owned()),
    ])
}

/// Has an operator and a charm make a secret, each of which another charm reads.
fn secrets(periapt: &Installation) -> anyhow::Result<Vec<Planted>> {
    let backwards: String = CHARMS_SECRET.chars().rev().collect();
    let script = format!(
        "script=db-relation-created: share password={backwards}\ndb-relation-created: set plain={CONTROL}"
    );
    periapt.deploy("probe", ["owner", "--config", &script])?;
    periapt.deploy("probe", ["reader", "--config", "script=*: open\n*: open-token"])?;
    periapt.ok(["integrate", "owner:db", "reader:sink"])?;
    let content = periapt.path().join("content");
    fs::write(&content, OPERATORS_SECRET)?;
    let uri = periapt.ok(["add-secret", "token", &format!("token#file={}", content.display())])?;
    fs::remove_file(content)?;
    periapt.ok(["grant-secret", "token", "reader"])?;
    periapt.ok(["config", "reader", &format!("token={}", uri.trim_end())])?;
    // The reader logs what it reads, backwards.
    for read in [CHARMS_SECRET, OPERATORS_SECRET] {
        let backwards: String = read.chars().rev().collect();
        let log = ["debug-log", "--replay", "--no-tail", "--include", "reader/0"];
        periapt.ok_until(&log, |log| log.contains(&backwards))?;
    }
    Ok(vec![
        ("the content of an operator's secret", OPERATORS_SECRET.to_owned()),
        ("the content of a charm's secret", CHARMS_SECRET.to_owned()),
    ])
}

/// Returns the forms in which a text may stand in a file: plain, and in base64 at each offset modulo three.
fn forms(text: &str) -> Vec<String> {
    let encoded = (0..3).map(|skip| {
        let padded = format!("{}{text}", "x".repeat(skip));
        let whole = base64::engine::general_purpose::STANDARD_NO_PAD.encode(padded);
        // What the ends stand for depends on what is beside them.
        whole.get(4..whole.len() - 4).unwrap_or_default().to_owned()
    });
    [text.to_owned()].into_iter().chain(encoded).collect()
}

fn contains(content: &str, text: &str) -> bool {
    forms(text).iter().any(|form| content.contains(form))
}

/// Returns bytes as a text. Those of a planted text and of its forms stay as they are.
fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the files below a directory with their content.
fn files(directory: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            found.extend(files(&entry.path())?);
        } else if kind.is_file() {
            // A running database deletes files.
            let Ok(content) = fs::read(entry.path()) else { continue };
            found.push((entry.path().display().to_string(), text_of(&content)));
        }
    }
    Ok(found)
}

/// Returns what the verbs of the command line print.
fn printed(periapt: &Installation) -> anyhow::Result<Vec<(String, String)>> {
    let verbs: [&[&str]; 22] = [
        &["status", "--format", "json"],
        &["show-model", "--format", "json"],
        &["show-application", "owner", "--format", "json"],
        &["show-unit", "owner/0", "--format", "json"],
        &["show-unit", "reader/0", "--format", "json"],
        &["show-status-log", "owner/0", "--format", "json"],
        &["config", "reader", "--format", "json"],
        &["secrets", "--format", "json"],
        &["show-secret", "token", "--format", "json"],
        &["hooks", "owner/0", "--format", "json"],
        &["hooks", "reader/0", "--format", "json"],
        &["debug-log", "--replay", "--no-tail"],
        &["audit-log", "--format", "json"],
        &["users", "--format", "json"],
        &["show-user", "jane", "--format", "json"],
        &["sessions", "--format", "json"],
        &["whoami", "--format", "json"],
        &["models", "--format", "json"],
        &["agents", "--format", "json"],
        &["controllers", "--format", "json"],
        &["show-controller", "--format", "json"],
        &["export-bundle"],
    ];
    let mut texts = Vec::new();
    for verb in verbs {
        let done = periapt.run(verb)?;
        ensure!(done.code == Some(0), "{verb:?}: {done:?}");
        texts.push((verb.join(" "), done.stdout));
        texts.push((format!("{} (standard error)", verb.join(" ")), done.stderr));
    }
    Ok(texts)
}

#[tokio::test]
async fn planted_secrets_stand_in_no_file_log_journal_output_or_process() -> anyhow::Result<()> {
    // Its logs say all that there is to say.
    let periapt = Installation::empty()?.with_environment([("PERIAPT_LOG", "trace".to_owned())]);
    periapt.ok(["bootstrap", "local", "--agent-name", "first"])?;
    periapt.ok(["add-model", "test"])?;
    let planted = [users(&periapt).await?, secrets(&periapt)?].concat();

    let mut written = printed(&periapt)?;
    for (pid, part) in parts(&periapt)? {
        for name in ["cmdline", "environ"] {
            let content = fs::read(format!("/proc/{pid}/{name}"))?;
            written.push((format!("{name} of {part:?}"), text_of(&content)));
        }
    }
    let data = files(&periapt.path().join("data"))?;
    ensure!(data.iter().any(|(_, content)| contains(content, CONTROL)), "the control stands in the database");
    let logs = data.iter().filter(|(name, _)| name.ends_with(".log"));
    ensure!(
        logs.filter(|(_, log)| log.contains("TRACE")).count() >= 2,
        "the logs are there, to the last detail"
    );
    written.extend(data);
    for (name, text) in &planted {
        for (place, content) in &written {
            ensure!(!contains(content, text), "{name} stands in {place}");
        }
    }
    Ok(())
}

#[test]
fn no_process_that_holds_secrets_leaves_a_core_dump() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("probe", ["owner"])?;
    periapt.wait_for(["application", "owner", "--status", "unknown"])?;
    let all = parts(&periapt)?;
    for wanted in [Part::Controller, Part::Keeper, Part::Runner] {
        let (pid, _) =
            all.iter().find(|(_, part)| *part == wanted).with_context(|| format!("no {wanted:?}"))?;
        let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size"));
        let words: Vec<_> = line.context("a limit")?.split_whitespace().take(2).collect();
        // At most one byte is less than any dump has, and at one byte no program is given a dump either.
        ensure!(words.iter().all(|word| matches!(*word, "0" | "1")), "{wanted:?}: {words:?}");
    }
    Ok(())
}
