//! Uploads while controllers fail: an operator gives a resource new content all the time, through the controllers in turn.
//! Afterwards each controller gives, from its own disk, the content that was acknowledged last and all others that the
//! resource keeps (H7).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use futures_util::stream;
use periapt_client::{Client, ClientCertificate, ClientError, Identity, Options, Seen, Trust};
use periapt_host_api::{
    ApplicationName, Digest, ResourceName, Timestamp,
    api::{ModelSelector, ResourceDetails},
    command::{Command, ControllerCommand, Deploy},
    resource::ResourceUpload,
};
use periapt_tests::{Installation, packed};
use periapt_transport::Authority;

use crate::{
    hooks::{may_be_repeated, url_of},
    site::{HOSTS, Site, UNTIL, blobs},
    story::Story,
};

/// The model, an application without units in it, and a resource that its charm declares.
const MODEL: &str = "uploads";
const APPLICATION: &str = "shelf";
const RESOURCE: &str = "data";

/// The pause between two contents. Controllers keep each for an hour, on disks that are small.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause before a request is repeated.
const AGAIN: Duration = Duration::from_millis(200);
/// The longest attempt through one controller. It may be paused, or wait for an answer of another one to which it gives a
/// copy; then it goes on with the upload, and a later attempt finds the content.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The longest time until a content is attached. Faults last for a minute and a half at most.
const ATTACHED_WITHIN: Duration = UNTIL.saturating_mul(2);

/// The operator of the resource.
pub(crate) struct Uploads {
    /// The clients of the controllers, by the number of the host. What one of them saw, no other one is shown without.
    clients: Vec<Client>,
    /// The directories of the controllers' blobs.
    disks: Vec<PathBuf>,
    model: ModelSelector,
    application: ApplicationName,
    resource: ResourceName,
    /// The last content whose attachment was acknowledged.
    newest: Option<Digest>,
    /// The number of contents whose attachment was acknowledged.
    acknowledged: usize,
}

impl Uploads {
    /// Makes the model with the application.
    pub(crate) async fn prepare(site: &Site) -> anyhow::Result<Self> {
        let seen = Seen::default();
        let client = |host: &Installation| -> anyhow::Result<Client> {
            let url = format!("unix://{}", host.socket("local").display());
            Ok(Client::new(Options::new(url, Identity::Local).with_seen(seen.clone()))?)
        };
        let clients = site.hosts.iter().map(|host| client(host)).collect::<anyhow::Result<Vec<_>>>()?;
        let (model, application): (ModelSelector, ApplicationName) = (MODEL.parse()?, APPLICATION.parse()?);
        let first = clients.first().context("a client")?;
        first.controller_command(ControllerCommand::add_model(MODEL.parse()?)).await?;
        let archive = fs::read(packed("probe", site.host(0)?.path())?)?;
        let charm = first.upload_charm(archive.into()).await?.digest;
        let shelf = Deploy { application: Some(application.clone()), ..Deploy::of(charm, 0) };
        first.command(&model, Command::Deploy(shelf)).await?;
        let disks = site.hosts.iter().map(|host| blobs(host)).collect();
        let resource = RESOURCE.parse()?;
        Ok(Self { clients, disks, model, application, resource, newest: None, acknowledged: 0 })
    }

    /// Gives the resource new content until the rounds are over.
    pub(crate) async fn run(mut self, story: &Story) -> anyhow::Result<Self> {
        for count in 0.. {
            if story.ended.load(Ordering::SeqCst) {
                break;
            }
            self.give(count, story).await?;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(self)
    }

    /// Gives the resource a content through the controllers in turn, until one of them acknowledges it or the rounds are
    /// over.
    async fn give(&mut self, count: usize, story: &Story) -> anyhow::Result<()> {
        let content = format!("content {count}\n");
        let (began, mut controller) = (Instant::now(), count);
        loop {
            let client = self.clients.get(controller % self.clients.len()).context("a client")?;
            let attempt = tokio::time::timeout(ANSWER_WITHIN, self.attach(client, &content)).await;
            let reason = match attempt {
                Ok(Ok(())) => {
                    let digest = Digest::of(content.as_bytes());
                    self.check_copies(&digest)?;
                    self.newest = Some(digest);
                    self.acknowledged += 1;
                    return Ok(());
                }
                Ok(Err(error)) if !may_be_repeated(&error) => {
                    return Err(error).with_context(|| format!("giving {content:?}"));
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer in time".to_owned(),
            };
            if story.ended.load(Ordering::SeqCst) {
                return Ok(());
            }
            ensure!(began.elapsed() < ATTACHED_WITHIN, "no controller takes {content:?}: {reason}");
            controller += 1;
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Checks that two controllers have a content that was acknowledged on their disks, so that it outlives one of them.
    fn check_copies(&self, digest: &Digest) -> anyhow::Result<()> {
        let name = digest.to_string();
        let below = Path::new("resources").join(name.get(..2).unwrap_or_default()).join(&name);
        let copies = self.disks.iter().filter(|disk| disk.join(&below).exists()).count();
        ensure!(copies >= 2, "H7: content {digest} was acknowledged, and {copies} disks have it");
        Ok(())
    }

    /// Uploads a content to a controller that does not have it, and attaches it.
    async fn attach(&self, client: &Client, content: &str) -> Result<(), ClientError> {
        let digest = Digest::of(content.as_bytes());
        if !client.has_resource(&digest).await? {
            let pieces = || stream::iter([Ok(content.as_bytes().to_vec().into())]);
            client.upload_resource(&digest, pieces).await?;
        }
        let (application, resource) = (self.application.clone(), self.resource.clone());
        let upload = ResourceUpload { digest, filename: None, reference: None };
        let attach = Command::AttachResource { application, resource, upload };
        client.command(&self.model, attach).await.map(drop)
    }

    /// Checks what each controller has in the end. Returns the number of contents that were acknowledged.
    pub(crate) async fn check(&self, site: &Site) -> anyhow::Result<usize> {
        let newest = self.newest.context("no content was acknowledged")?;
        for ((name, host), client) in HOSTS.into_iter().zip(&site.hosts).zip(&self.clients) {
            let of = || format!("H7: the controller of {name}");
            let resources = answered(async || client.resources(&self.model, &self.application).await).await;
            let resources = resources.with_context(of)?;
            let (controller, mut kept) = (as_controller(host)?, Vec::new());
            for digest in contents(&resources, &self.resource) {
                // One that was away fetches from the others what it lacks.
                let content = answered(async || download(&controller, &digest).await).await;
                kept.push((digest, content.with_context(|| format!("{}: content {digest}", of()))?));
            }
            check_kept(newest, &kept).with_context(of)?;
        }
        Ok(self.acknowledged)
    }
}

/// Returns the contents that a resource has and had before, as far as it keeps them.
fn contents(resources: &[ResourceDetails], name: &ResourceName) -> Vec<Digest> {
    let resource = resources.iter().filter(|resource| resource.name == *name);
    let kept = resource.flat_map(|resource| resource.former.iter().chain(&resource.attached));
    kept.map(|content| content.digest).collect()
}

/// Checks the contents that a resource keeps, as a controller gave them. A request of which no controller told the outcome
/// may be carried out late, so the newest that was acknowledged need not be the present one.
fn check_kept(newest: Digest, kept: &[(Digest, Vec<u8>)]) -> anyhow::Result<()> {
    let digests: Vec<Digest> = kept.iter().map(|(digest, _)| *digest).collect();
    ensure!(digests.contains(&newest), "{newest:?} was acknowledged, and the resource has {digests:?}");
    for (digest, content) in kept {
        let got = Digest::of(content);
        ensure!(got == *digest, "content {digest} has digest {got}");
    }
    Ok(())
}

/// Returns a client that a host's controller takes for another controller. It is given what is on the controller's disk.
fn as_controller(host: &Installation) -> anyhow::Result<Client> {
    let directory = host.path().join("data/controllers/local/controller");
    let read = |name: &str| fs::read_to_string(directory.join(name));
    let authority = Authority::from_pem(&read("ca.pem")?, &read("ca-key.pem")?)?;
    let [member, ..] = HOSTS;
    let (certificate, key) = authority.issue_controller(member, Timestamp::now())?;
    let shown = ClientCertificate::default();
    shown.set_pem(&certificate, &key)?;
    let trust = Trust::Authority(authority.certificate().to_owned());
    let options = Options::new(url_of(host)?, Identity::Controller);
    Ok(Client::new(options.with_trust(trust).with_certificate(shown))?)
}

/// Repeats a question until a controller answers it.
async fn answered<T>(question: impl AsyncFn() -> Result<T, ClientError>) -> anyhow::Result<T> {
    let began = Instant::now();
    loop {
        match question().await {
            Ok(answer) => return Ok(answer),
            Err(_) if began.elapsed() < UNTIL => tokio::time::sleep(AGAIN).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Fetches a content from a controller's disk.
async fn download(controller: &Client, digest: &Digest) -> Result<Vec<u8>, ClientError> {
    let mut download = controller.fetch_copy("resource", digest).await?;
    let mut content = Vec::new();
    while let Some(piece) = download.next().await? {
        content.extend_from_slice(&piece);
    }
    Ok(content)
}

#[test]
fn an_acknowledged_content_that_is_not_kept_or_is_another_one_is_found() {
    let content = |text: &str| (Digest::of(text.as_bytes()), text.as_bytes().to_vec());
    let [first, second, third] = ["first", "second", "third"].map(content);
    let holds = |kept: &[(Digest, Vec<u8>)]| check_kept(second.0, kept).is_ok();
    assert!(holds(&[first.clone(), second.clone()]));
    assert!(holds(&[second.clone(), third.clone()]), "the third one was carried out without an answer");
    assert!(!holds(&[]) && !holds(&[first.clone(), third.clone()]), "the second one was acknowledged");
    assert!(!holds(&[(first.0, third.1), second.clone()]), "the first one has the bytes of the third");
    assert!(!holds(&[(second.0, Vec::new())]), "the second one is empty");
}
