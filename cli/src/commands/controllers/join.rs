//! `controller join`: a further controller of a log, on this machine.

use std::{net::SocketAddr, path::PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Args;
use periapt_client::{Client, Identity, Options, Trust};
use periapt_host_api::{
    LEVEL, Timestamp,
    agent::JoinText,
    member::{MemberJoin, MemberKeys},
};
use periapt_transport::{PublicName, Readers, read_file, write_file};

use crate::{
    blobs_args::BlobsArgs,
    context::{Context, listed, local_client},
    data::{ClientData, ControllerDir, ControllerEntry, ControllerName, Local, starting::Starting},
    error::{Explain as _, Failure, Result, with_source},
    files::make_private,
    local::{StartOptions, listening, start_controller, trusted},
    log_args::{BOUND, LogArgs},
    process::{ProcessId, Started},
};

/// Start a further controller on this machine, which shares the state of others
///
/// It is given the keys and the place of the log by a running controller, to which it proves itself by a token of
/// `periapt controller-token`. It runs in the background, as after `periapt bootstrap`; no agent is started.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  periapt controller join prod --controller https://node-1.example:17070 --token-file node-2.token --member node-2 --listen 0.0.0.0:17070 --public-name node-2.example"
)]
pub(crate) struct Join {
    /// This client's name for the controllers
    #[arg(default_value = "local")]
    name: ControllerName,
    /// The URL of the controller that made the token
    #[arg(long, value_name = "URL")]
    controller: String,
    /// The file with the token, which only its owner can read
    #[arg(long, visible_alias = "token", value_name = "FILE")]
    token_file: PathBuf,
    /// The name of this controller, for which the token was made
    #[arg(long, value_name = "NAME")]
    member: String,
    /// The address that it listens on; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// A name or an address by which other machines reach it, for its URL and its certificate; may be repeated
    #[arg(long = "public-name", value_name = "NAME")]
    public_names: Vec<PublicName>,
    /// The most MiB of entries that the log has while this controller leads, by default 512
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(BOUND))]
    log_bound: Option<u32>,
}

impl Join {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        // The token itself must not stand in an error, either.
        if self.token_file.to_str().is_some_and(|text| text.parse::<JoinText>().is_ok()) {
            return Err(Failure::misused(
                "--token takes a file with the token, because all users of this machine can see command lines",
            ));
        }
        let text = read_file(&self.token_file, Readers::Owner).map_err(with_source)?;
        let text =
            text.ok_or_else(|| Failure::new(format!("{}: no such file", self.token_file.display())))?;
        let text: JoinText = text.trim().parse().map_err(|_| {
            Failure::new(format!("{}: not a token of `periapt controller-token`", self.token_file.display()))
        })?;
        let name = &self.name;
        let mut starting =
            ClientData::locked(&context.data, |known| match known.controllers.contains_key(name) {
                true => Err(Failure::new(format!("controller \"{name}\" already exists"))
                    .with_hint(format!("`periapt unregister {name}` forgets it"))),
                false => Starting::claim(context.data.controller(name)),
            })?;
        let joined = self.start(context, text, &mut starting).await;
        match joined {
            Ok(url) => {
                starting.done()?;
                context.say(format_args!("Controller \"{}\" joined, and listens at {url}", self.member));
                Ok(())
            }
            Err(failure) => Err(failure.and_undoing(starting.undo().await)),
        }
    }

    async fn start(&self, context: &Context, text: JoinText, starting: &mut Starting) -> Result<String> {
        let options =
            Options::new(self.controller.clone(), Identity::Local).with_trust(Trust::Digest(text.authority));
        let join = MemberJoin {
            member: self.member.clone(),
            token: text.token,
            level: LEVEL,
            now: Some(Timestamp::now()),
        };
        let keys = Client::new(options)?.join_member(&join).await?;
        let directory = starting.directory().clone();
        let log = write_keys(&directory, (self.member.as_str(), self.log_bound), &keys)?;
        let blobs = keys.blobs.as_ref().map(|place| BlobsArgs::of(place, directory.path())).transpose()?;
        if let Some(blobs) = &blobs {
            // One that this machine does not reach is refused before the controller starts.
            blobs.open().await?;
        }
        let public_names: Vec<String> = self.public_names.iter().map(ToString::to_string).collect();
        let options = StartOptions {
            listen: self.listen,
            public_names: &public_names,
            tls: None,
            issuer: None,
            log: Some(&log),
            blobs: blobs.as_ref(),
        };
        let record = |process: &ProcessId| starting.add(process);
        let Started { process, at: url, guard } =
            start_controller(&self.name, &directory, options, record).await?;
        let info = local_client(&directory)?.controller().await?;
        let listen = listening(self.listen, &url)?;
        let local = Local {
            controller: process,
            listen: Some(listen),
            public_names,
            tls: None,
            issuer: None,
            log: Some(log),
            blobs,
            agent: None,
        };
        let ca_cert = Some(trusted(&directory, None)?);
        let entry = ControllerEntry {
            addresses: listed(&info, None, &url),
            url: url.clone(),
            ca_cert,
            uuid: info.uuid,
            current_model: None,
            local: Some(local),
        };
        ClientData::update(&context.data, |known| {
            known.controllers.insert(self.name.clone(), entry);
            known.current_controller.get_or_insert_with(|| self.name.clone());
            Ok(())
        })?;
        guard.release();
        Ok(url)
    }
}

/// Writes the keys into the new controller's directory, and returns the options of its log.
fn write_keys(directory: &ControllerDir, member: (&str, Option<u32>), keys: &MemberKeys) -> Result<LogArgs> {
    let own = directory.controller();
    make_private(&own)?;
    let write = |name: &str, content: &str, readers| {
        let path = own.join(name);
        write_file(&path, content, readers).map_err(with_source)?;
        Ok::<_, Failure>(path)
    };
    write("ca-key.pem", &keys.authority_key, Readers::Owner)?;
    write("ca.pem", &keys.authority, Readers::All)?;
    let secret = STANDARD.decode(&keys.secret_key).explain(|| "the key of secrets".to_owned())?;
    write_file(&own.join("secret-key"), &secret, Readers::Owner).map_err(with_source)?;
    let ca = keys.log.authority.as_deref().map(|text| write("log-ca.pem", text, Readers::All)).transpose()?;
    let identity = keys.log.identity.as_ref();
    let cert = identity.map(|(cert, _)| write("log-cert.pem", cert, Readers::All)).transpose()?;
    let key = identity.map(|(_, key)| write("log-key.pem", key, Readers::Owner)).transpose()?;
    Ok(LogArgs::of(&keys.log.url, ca, cert, key, member))
}
