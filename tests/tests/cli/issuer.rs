//! External users, who log in at an issuer of identities.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, ensure};
use futures_util::future::join_all;
use periapt_client::{Client, Identity};
use periapt_host_api::user::{AwaitLogin, BegunLogin, IssuedSession, LoginResult};
use periapt_tests::{Installation, IssuerDecision, IssuerKey, TestIssuer};
use serde_json::json;

/// Bootstraps a controller with an issuer.
fn bootstrapped(issuer: &TestIssuer, secret: &str) -> anyhow::Result<Installation> {
    use std::os::unix::fs::PermissionsExt as _;

    let periapt = Installation::empty()?;
    let (file, authority) = (periapt.path().join("client.secret"), periapt.path().join("issuer.pem"));
    std::fs::write(&file, secret)?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
    std::fs::write(&authority, issuer.authority())?;
    periapt.ok(bootstrap(issuer.url()))?;
    Ok(periapt)
}

fn bootstrap(url: &str) -> Vec<&str> {
    let client = ["--oidc-issuer", url, "--oidc-client-id", TestIssuer::CLIENT];
    let files = ["--oidc-client-secret-file", "client.secret", "--oidc-ca-cert", "issuer.pem"];
    [&["bootstrap", "--no-agent"][..], &client, &files].concat()
}

/// A command that waits for its user's approval. Dropping it ends it.
struct Waiting {
    process: Child,
    stderr: BufReader<std::process::ChildStderr>,
    code: String,
}

impl Waiting {
    /// Starts a command, and reads the code that it shows its user.
    fn start(mut command: Command, issuer: &TestIssuer) -> anyhow::Result<Self> {
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut stderr = BufReader::new(process.stderr.take().context("no standard error")?);
        let mut line = String::new();
        stderr.read_line(&mut line)?;
        let visit = format!("Please visit {}/approve and enter code ", issuer.url());
        let rest = line.strip_prefix(&visit).and_then(|rest| rest.strip_suffix(" to log in.\n"));
        let code = rest.with_context(|| format!("another line: {line}"))?.to_owned();
        Ok(Self { process, stderr, code })
    }

    /// Waits for the end of the command, and returns its exit code and the rest of standard error.
    fn ended(mut self) -> anyhow::Result<(Option<i32>, String)> {
        let mut text = String::new();
        self.stderr.read_to_string(&mut text)?;
        Ok((self.process.wait()?.code(), text))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a command, decides about its login, and returns its exit code and standard error.
fn decided(
    command: Command,
    issuer: &TestIssuer,
    decision: IssuerDecision,
) -> anyhow::Result<(Option<i32>, String)> {
    let waiting = Waiting::start(command, issuer)?;
    issuer.decide(&waiting.code, decision)?;
    waiting.ended()
}

/// Returns the text to register with that a command has printed.
fn registration(output: &str) -> anyhow::Result<String> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("periapt register "));
    Ok(line.with_context(|| format!("no registration in {output}"))?.to_owned())
}

#[test]
fn an_external_user_is_granted_access_logs_in_with_a_code_and_works() -> anyhow::Result<()> {
    let issuer = TestIssuer::start()?;
    let (operator, colleague) = (bootstrapped(&issuer, TestIssuer::SECRET)?, Installation::empty()?);
    operator.ok(["add-model", "test"])?;
    let added = operator.refused(["add-user", "jane@example.com"])?;
    assert!(added.contains("`periapt grant jane@example.com login`"), "{added}");
    let early = operator.refused(["grant", "jane@example.com", "read", "test"])?;
    assert!(early.contains("user \"jane@example.com\" not found"), "{early}");
    let text = registration(&operator.ok(["grant", "jane@example.com", "login"])?)?;

    let jane = || IssuerDecision::approve("jane@example.com");
    let (code, told) = decided(colleague.command(["register", &text]), &issuer, jane())?;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("Welcome, jane@example.com. You are now logged into \"local\"."), "{told}");
    assert_eq!(colleague.json(["whoami"])?["user"], "jane@example.com");
    assert!(colleague.refused(["status", "-m", "admin/test"])?.contains("model admin/test not found"));
    operator.ok(["grant", "jane@example.com", "write", "test"])?;
    colleague.ok(["model-config", "-m", "admin/test", "update-status-hook-interval=1m"])?;
    let users = operator.ok(["users"])?;
    assert!(users.contains("jane@example.com") && users.contains("Jane Doe"), "{users}");
    let log = operator.ok(["audit-log"])?;
    assert!(log.contains(&format!("account account-of-jane@example.com of {}", issuer.url())), "{log}");

    // A user of the issuer has no password here.
    let reset = operator.refused(["change-user-password", "jane@example.com", "--reset"])?;
    assert!(reset.contains("an external user logs in at the issuer"), "{reset}");
    colleague.ok(["logout"])?;
    let (code, told) = decided(colleague.command(["login"]), &issuer, jane())?;
    assert_eq!(code, Some(0), "{told}");

    // The controller is started again with its issuer.
    operator.ok(["controller", "stop"])?;
    operator.ok(["controller", "start"])?;
    let again = ["login", "-u", "jane@example.com"];
    let (code, told) = decided(colleague.command(again), &issuer, jane())?;
    assert_eq!(code, Some(0), "{told}");

    let (code, told) =
        decided(colleague.command(again), &issuer, IssuerDecision::approve("joe@example.com"))?;
    assert_eq!(code, Some(1), "{told}");
    let unknown = "user \"joe@example.com\" has no access to this controller";
    assert!(told.contains("cannot log into controller \"local\"") && told.contains(unknown), "{told}");
    operator.ok(["grant", "joe@example.com", "login"])?;
    let (code, told) =
        decided(colleague.command(again), &issuer, IssuerDecision::approve("joe@example.com"))?;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("user \"joe@example.com\" has approved the login, and not"), "{told}");
    assert_eq!(colleague.json(["whoami"])?["user"], "jane@example.com");

    operator.ok(["disable-user", "jane@example.com"])?;
    assert!(colleague.refused(["models"])?.contains("not logged in"));
    let (code, told) = decided(colleague.command(again), &issuer, jane())?;
    assert!(code == Some(1) && told.contains("user \"jane@example.com\" is disabled"), "{told}");
    operator.ok(["remove-user", "jane@example.com", "-y"])?;
    let (code, told) = decided(colleague.command(again), &issuer, jane())?;
    assert!(code == Some(1) && told.contains("has no access to this controller"), "{told}");
    Ok(())
}

/// Begins a login, decides about it, and waits for its end.
async fn finished(
    client: &Client,
    issuer: &TestIssuer,
    decision: IssuerDecision,
) -> anyhow::Result<IssuedSession> {
    let BegunLogin { token, user_code, .. } = client.begin_login().await?;
    issuer.decide(&user_code, decision)?;
    loop {
        match client.await_login(&AwaitLogin { token: token.clone() }).await? {
            LoginResult::Pending => {}
            LoginResult::LoggedIn(issued) => return Ok(issued),
        }
    }
}

fn on_socket(periapt: &Installation) -> anyhow::Result<Client> {
    let url = format!("unix://{}", periapt.socket("local").display());
    Ok(Client::new(periapt_client::Options::new(url, Identity::Local))?)
}

#[test]
fn whatever_the_issuer_answers_but_a_proof_is_refused_with_its_reason() -> anyhow::Result<()> {
    let issuer = TestIssuer::start()?;
    let periapt = bootstrapped(&issuer, TestIssuer::SECRET)?;
    periapt.ok(["grant", "jane@example.com", "login"])?;
    let other_client = "its ID token is refused: it is for another client";
    let with = IssuerDecision::approve_with;
    let cases = [
        (IssuerDecision::Error("access_denied"), "the login was denied at the issuer"),
        (IssuerDecision::Error("expired_token"), "the code has expired before the login was approved"),
        (
            IssuerDecision::Error("invalid_grant"),
            "it refuses the question for a login's result: invalid_grant",
        ),
        (IssuerDecision::Raw(200, "<html>".to_owned()), "cannot be read: status 200"),
        (IssuerDecision::Raw(200, "{}".to_owned()), "it has no id_token"),
        (IssuerDecision::Raw(500, "no JSON".to_owned()), "cannot be read: status 500"),
        (with(json!({ "aud": "another" })), other_client),
        (with(json!({ "azp": "another" })), other_client),
        (with(json!({ "nonce": "another" })), "its nonce is another one"),
        (with(json!({ "iss": "https://elsewhere.example" })), "another issuer made it"),
        (with(json!({ "exp": 1_000_000_000 })), "s ago by the controller's clock"),
        (
            with(json!({ "iat": 4_000_000_000_i64 })),
            "by the controller's clock: that clock, or the issuer's, is wrong",
        ),
        (with(json!({ "email_verified": false })), "has not verified the user's e-mail address"),
        (with(json!({ "email": null })), "it has no claim \"email\" that names the user"),
        (
            IssuerDecision::Approve { claims: json!({}), key: IssuerKey::Stranger },
            "none of the issuer's keys has signed it",
        ),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = on_socket(&periapt)?;
        let all = cases.iter().map(|(decision, _)| finished(&client, &issuer, decision.clone()));
        for (result, (decision, expected)) in join_all(all).await.into_iter().zip(&cases) {
            let error = result.err().with_context(|| format!("{decision:?} was taken"))?.to_string();
            ensure!(error.contains(expected), "{decision:?}: {error}");
        }
        // The same issuer, with both of its keys and at its own pace.
        let good = [
            IssuerDecision::approve("jane@example.com"),
            with(json!({})),
            IssuerDecision::Error("slow_down"),
        ];
        for result in join_all(good.map(|decision| finished(&client, &issuer, decision))).await {
            assert_eq!(result?.user.as_str(), "jane@example.com");
        }
        // Another account that has come to the same address is not the same user.
        let other = with(json!({ "sub": "another account" }));
        let error = finished(&client, &issuer, other).await.err().context("taken over")?.to_string();
        ensure!(error.contains("is another account than the one that logged in before"), "{error}");
        anyhow::Ok(())
    })
}

#[test]
fn an_issuer_that_begins_no_login_is_told_with_its_reason() -> anyhow::Result<()> {
    let issuer = TestIssuer::start()?;
    let periapt = bootstrapped(&issuer, TestIssuer::SECRET)?;
    let refused = |description: Option<(u16, String)>, expected: &str| -> anyhow::Result<()> {
        issuer.describe(description);
        let error = periapt.refused(["login", "-u", "jane@example.com"])?;
        ensure!(error.contains(expected), "{error}");
        Ok(())
    };
    let changed = |change: &dyn Fn(&mut serde_json::Value)| Some((200, issuer.description(change)));
    let other = changed(&|document| document["issuer"] = json!("https://elsewhere.example"));
    refused(other, "that of another issuer, \"https://elsewhere.example\"")?;
    let none = changed(&|document| document["device_authorization_endpoint"] = json!(null));
    refused(none, "it offers no logins of devices")?;
    let plain = changed(&|document| document["token_endpoint"] = json!("http://127.0.0.1/token"));
    refused(plain, "no token_endpoint that begins with https://")?;
    refused(Some((200, "<html>".to_owned())), "its description cannot be read")?;
    refused(Some((404, String::new())), "its description cannot be read: status 404")?;
    refused(Some((302, String::new())), "it redirects to another address")?;
    refused(Some((200, "x".repeat(1 << 20))), "its answer has more than 256 KiB")?;
    issuer.expect_secret("another secret");
    refused(None, "it refuses the begin of a login: invalid_client (wrong secret)")?;
    drop(issuer);
    let down = periapt.refused(["login", "-u", "jane@example.com"])?;
    assert!(down.contains("it does not answer: Connection refused"), "{down}");
    Ok(())
}

#[test]
fn an_issuer_is_known_by_its_authority_and_named_with_its_client() -> anyhow::Result<()> {
    let (issuer, other) = (TestIssuer::start()?, TestIssuer::start()?);
    let periapt = bootstrapped(&issuer, TestIssuer::SECRET)?;
    std::fs::write(periapt.path().join("other.pem"), other.authority())?;
    periapt.ok(["controller", "stop"])?;
    let url = issuer.url();
    let public = ["--oidc-issuer", url, "--oidc-client-id", "x", "--oidc-ca-cert", "other.pem"];
    periapt.ok([&["controller", "start"][..], &public].concat())?;
    let untrusted = periapt.refused(["login", "-u", "jane@example.com"])?;
    assert!(untrusted.contains("of an authority that the controller does not trust"), "{untrusted}");

    // The issuer stays until it is taken away.
    let running = periapt.refused(["controller", "start", "--no-oidc-issuer"])?;
    assert!(running.contains("keeps the options that it was started with"), "{running}");
    periapt.ok(["controller", "stop"])?;
    periapt.ok(["controller", "start", "--no-oidc-issuer"])?;
    let taken = periapt.refused(["login", "-u", "jane@example.com"])?;
    assert!(taken.contains("this controller has no issuer of identities"), "{taken}");

    let elsewhere = Installation::empty()?;
    let missing = elsewhere.refused(bootstrap(url))?;
    assert!(
        missing.contains("issuer.pem: no such file") || missing.contains("client.secret: no such file"),
        "{missing}"
    );
    elsewhere.ok(["bootstrap", "--no-agent"])?;
    let none = elsewhere.refused(["login", "-u", "jane@example.com"])?;
    assert!(none.contains("this controller has no issuer of identities"), "{none}");
    let unnamed = elsewhere.refused(["login"])?;
    assert!(unnamed.contains("no user name given"), "{unnamed}");
    Ok(())
}
