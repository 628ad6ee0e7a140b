//! The spans that a controller exports, and the contexts that its frames carry.

use futures_util::TryStreamExt as _;
use periapt_client::{Client, Identity, Options as ClientOptions};
use periapt_controller::{Handle, Listen, Options};
use periapt_host_api::{
    AgentName, ModelName,
    api::ModelSelector,
    command::{Answer, Command, Commands, ControllerCommand},
    trace::TraceContext,
};
use periapt_telemetry::export::{self, Destination, LastSpans};
use periapt_tests::{Collected, Collector, TraceTree, check_helper, packed};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A controller in this process that exports its spans.
struct Traced {
    collector: Collector,
    handle: Handle,
    _directory: tempfile::TempDir,
    _last_spans: LastSpans,
}

impl Traced {
    async fn start() -> anyhow::Result<Self> {
        let collector = Collector::start()?;
        let endpoint = collector.endpoint();
        let destination = Destination::Collector { endpoint: &endpoint, service: "periapt-controller" };
        let (layer, last_spans) = export::start(destination)?;
        tracing_subscriber::registry().with(layer).init();
        let directory = tempfile::tempdir()?;
        let listen = Listen::InProcess("127.0.0.1:0".parse()?);
        let options = Options::in_directory("home", directory.path(), listen, "engine", check_helper()?)?;
        let service = options.build().await?;
        let handle = service.handle();
        tokio::spawn(service.run(CancellationToken::new()));
        Ok(Self { collector, handle, _directory: directory, _last_spans: last_spans })
    }

    fn client(&self, identity: Identity, trace: Option<&str>) -> anyhow::Result<Client> {
        let trace = trace.map(str::parse).transpose()?;
        Ok(Client::new(ClientOptions::new(self.handle.url(), identity).with_trace(trace))?)
    }
}

/// Returns the tree of the request that the caller's span has caused, once it is complete.
fn request(collector: &Collector, caller: &TraceContext) -> anyhow::Result<TraceTree> {
    let find = |spans: &[Collected]| {
        let trees = TraceTree::of(spans, caller.trace.get());
        trees
            .into_iter()
            .find(|tree| tree.span.parent == Some(caller.span.get()) && tree.at(&["command"]).is_some())
    };
    let complete = |tree: TraceTree| tree.at(&["command", "batch", "commit"]).is_some();
    let spans = collector.wait_for(|spans| find(spans).is_some_and(complete))?;
    find(&spans).ok_or_else(|| anyhow::anyhow!("it was there"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_traced_from_its_request_to_the_commit_and_its_revision_names_it() -> anyhow::Result<()>
{
    let traced = Traced::start().await?;
    let caller: TraceContext = CALLER.parse()?;
    let operator = traced.client(Identity::Local, Some(CALLER))?;
    let name = ModelName::new("m")?;
    let Answer::Model { uuid } = operator.controller_command(ControllerCommand::add_model(name)).await?
    else {
        panic!("a model is answered")
    };
    let tree = request(&traced.collector, &caller)?;
    let root = &tree.span;
    assert_eq!((root.name.as_str(), root.service.as_str()), ("request", "periapt-controller"));
    let shown = [root.attribute("method"), root.attribute("route"), root.attribute("status")];
    assert_eq!(shown, ["POST", "/v1/commands", "200"]);
    let [command] = tree.all_at(&["command"])[..] else { panic!("one command:\n{}", tree.render()) };
    assert_eq!(command.span.attribute("command"), "AddModel");
    assert_eq!(command.span.attribute("outcome"), "done");
    let commit = tree.at(&["command", "batch", "commit"]).unwrap();
    assert_eq!(commit.span.attribute("outcome"), "written");
    assert_eq!(commit.span.attribute("revision"), command.span.attribute("revision"));
    assert!(!commit.span.attribute("sync_us").is_empty(), "{:?}", commit.span);
    // Each span lies within the one that caused it.
    for (outer, inner) in [(root, &command.span), (&command.span, &commit.span)] {
        assert!(outer.began_ns <= inner.began_ns, "{outer:?} {inner:?}");
    }

    // A frame brings a command's context to those who watch the model: agents with units of it.
    let one = AgentName::new("one")?;
    let agent = traced.client(Identity::Agent(one.clone()), None)?;
    let host = serde_json::json!({
        "addresses": ["10.0.0.1"], "boot-id": "b1", "hostname": "host", "version": "0.1.0", "engine": "engine"
    });
    agent.register(&one, &serde_json::from_value(host)?).await?;
    let mut assignments = agent.assignments(&one).await?;
    let plain = traced.client(Identity::Local, None)?;
    let directory = tempfile::tempdir()?;
    let archive = std::fs::read(packed("probe", directory.path())?)?;
    let charm = plain.upload_charm(archive.into()).await?.digest;
    let deploy = serde_json::json!({ "deploy": { "application": "probe", "charm": charm, "units": 1 } });
    plain.command(&ModelSelector::Uuid(uuid), serde_json::from_value(deploy)?).await?;
    while assignments.try_next().await?.is_some_and(|assigned| assigned.models.is_empty()) {}
    let mut frames = agent.watch(&one, &uuid, None).await?;
    let full = frames.try_next().await?.unwrap();
    assert!(full.traces.iter().any(|cause| command.span.is(&cause.context)), "{:?}", full.traces);
    let other = CALLER.replace("00f067aa0ba902b7", "00f067aa0ba902b8");
    let set = [("update-status-hook-interval".to_owned(), "7m".to_owned())].into();
    let config = Command::SetModelConfig { set, reset: Vec::new() };
    let operator = traced.client(Identity::Local, Some(&other))?;
    operator.command(&ModelSelector::Uuid(uuid), config).await?;
    let change = loop {
        let frame = frames.try_next().await?.unwrap();
        if !frame.traces.is_empty() {
            break frame;
        }
    };
    let tree = request(&traced.collector, &other.parse()?)?;
    let command = tree.at(&["command"]).unwrap();
    let [cause] = change.traces[..] else { panic!("one cause: {:?}", change.traces) };
    assert!(command.span.is(&cause.context), "{cause:?}\n{}", tree.render());
    assert_eq!(command.span.attribute("revision"), cause.revision.0.to_string());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_may_continue_another_trace_than_its_request() -> anyhow::Result<()> {
    let traced = Traced::start().await?;
    let own: TraceContext = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01".parse()?;
    let name = |name: &str| ControllerCommand::add_model(ModelName::new(name).unwrap());
    let body = serde_json::to_string(&Commands {
        commands: vec![name("one"), name("two")],
        traces: vec![Some(own)],
    })?;
    let address = traced.handle.address();
    let request = format!(
        "POST /v1/commands HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ntraceparent: {CALLER}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let answer = tokio::task::spawn_blocking(move || {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(address)?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    });
    let answer = answer.await??;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let caller: TraceContext = CALLER.parse()?;
    let commands = |spans: &[Collected], parent: u64| -> Vec<Collected> {
        let is_it = |span: &&Collected| span.name == "command" && span.parent == Some(parent);
        spans.iter().filter(is_it).cloned().collect()
    };
    let requests = |spans: &[Collected]| -> Vec<Collected> {
        spans.iter().filter(|span| span.parent == Some(caller.span.get())).cloned().collect()
    };
    let spans = traced.collector.wait_for(|spans| {
        let of_request = requests(spans).iter().any(|request| !commands(spans, request.id).is_empty());
        of_request && !commands(spans, own.span.get()).is_empty()
    })?;
    let [request] = &requests(&spans)[..] else { panic!("one request: {spans:?}") };
    let [first] = &commands(&spans, own.span.get())[..] else { panic!("one command has its own trace") };
    let [second] = &commands(&spans, request.id)[..] else { panic!("the other is a child of the request") };
    assert_eq!((first.trace, second.trace), (own.trace.get(), caller.trace.get()));
    assert_eq!(first.links, [(request.trace, request.id)], "and is linked to the request");
    Ok(())
}
