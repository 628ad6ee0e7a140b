//! Dialogues with commands in containers (decision 111) and the logs of workloads, over real connections, with an agent
//! that the test plays.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use periapt_client::{ExecSession, NdJson};
use periapt_host_api::{
    ErrorCode, RequestId,
    access::ModelAccess,
    agent::AgentAssignments,
    command::{Command, Deploy},
    exec_session::{
        ExecBytes, ExecSessionInput, ExecSessionOrder, ExecSessionOutput, ExecSessionRequest, MAX_CHUNK_BYTES,
    },
    workload_log::{PartAnswer, WorkloadLogLine, WorkloadLogPart, WorkloadLogQuery},
};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::{
    fixture::{Agent, Fixture, Model, charm_with_container, code_of, next, next_where, unit},
    users::{join, with_token},
};

/// An agent with a unit that has a container.
struct Site {
    fixture: Fixture,
    model: Model,
    agent: Agent,
    assignments: NdJson<AgentAssignments>,
}

impl Site {
    async fn new() -> Self {
        Self::on(Fixture::start().await).await
    }

    async fn on(fixture: Fixture) -> Self {
        let agent = fixture.as_agent("one");
        let mut assignments = agent.connect().await;
        let model = fixture.add_model("m").await;
        let charm = fixture.client.upload_charm(charm_with_container()).await.unwrap().digest;
        model.command(Command::Deploy(Deploy::of(charm, 1))).await.unwrap();
        next_where(&mut assignments, |assigned| assigned.models.contains_key(&model.uuid)).await;
        Self { fixture, model, agent, assignments }
    }
}

fn request() -> ExecSessionRequest {
    let command = vec!["cat".to_owned()];
    ExecSessionRequest { container: "web".parse().unwrap(), command, terminal: None }
}

/// Waits for the order of a session, and takes it.
async fn taken(agent: &Agent, assignments: &mut NdJson<AgentAssignments>) -> (RequestId, ExecSessionOrder) {
    let assigned = next_where(assignments, |assigned| !assigned.sessions.is_empty()).await;
    let (id, order) = assigned.sessions.into_iter().next().unwrap();
    hand_over(agent, id, WorkloadLogPart::Begun, "").await;
    hand_over(agent, id, WorkloadLogPart::Data, "\"running\"\n").await;
    (id, order)
}

async fn hand_over(agent: &Agent, id: RequestId, part: WorkloadLogPart, text: &str) {
    let part = (part, text.to_owned().into());
    agent.client.workload_log_part(&agent.name, id, part).await.unwrap();
}

/// Hands lines over, each once there is room for it. `held` is told the number of lines before the first wait.
async fn hand_all_over<T: Serialize>(
    agent: &Agent,
    id: RequestId,
    lines: impl Iterator<Item = T>,
    held: oneshot::Sender<usize>,
) {
    let mut held = Some(held);
    for (number, line) in lines.enumerate() {
        let part = (WorkloadLogPart::Data, Bytes::from(serde_json::to_string(&line).unwrap() + "\n"));
        while agent.client.workload_log_part(&agent.name, id, part.clone()).await.unwrap()
            == PartAnswer::NoRoom
        {
            if let Some(held) = held.take() {
                held.send(number).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_dialogue_goes_both_ways_at_once_over_one_request() {
    let Site { fixture, model, agent, mut assignments } = Site::new().await;
    let chunk = ExecBytes::new(vec![7; MAX_CHUNK_BYTES]).unwrap();
    // More than all windows and queues on the way have room for.
    let lines: Vec<_> = (0..64).map(|_| ExecSessionInput::Stdin(chunk.clone())).collect();
    let expected = lines.len() + 1;
    let played = tokio::spawn(async move {
        let (id, order) = taken(&agent, &mut assignments).await;
        let (mut heard, mut bytes) = (Vec::new(), Vec::new());
        while heard.len() < expected {
            bytes.extend(agent.client.exec_session_input(&agent.name, id).await.unwrap());
            while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = bytes.drain(..=end).collect();
                heard.push(serde_json::from_slice::<ExecSessionInput>(&line).unwrap());
            }
        }
        let line = serde_json::to_string(&ExecSessionOutput::Stderr(chunk)).unwrap() + "\n";
        hand_over(&agent, id, WorkloadLogPart::Data, &line).await;
        hand_over(&agent, id, WorkloadLogPart::End, "7").await;
        next_where(&mut assignments, |assigned| assigned.sessions.is_empty()).await;
        (order, heard)
    });
    let session = fixture.client.exec_session(&model.selector(), &unit("served/0"), request()).await.unwrap();
    let ExecSession { input, mut output } = session;
    assert_eq!(next(&mut output).await, ExecSessionOutput::Running);
    for line in &lines {
        assert!(input.send(line).await);
    }
    assert!(input.send(&ExecSessionInput::End).await);
    assert!(matches!(next(&mut output).await, ExecSessionOutput::Stderr(_)));
    assert_eq!(next(&mut output).await, ExecSessionOutput::Exit(7));
    drop((input, output));
    let (order, heard) = played.await.unwrap();
    let told = ExecSessionOrder { model: model.uuid, unit: unit("served/0"), request: request() };
    assert_eq!(order, told);
    assert!(heard.starts_with(&lines) && heard.last() == Some(&ExecSessionInput::End));
    fixture.stop().await;
}

#[tokio::test]
async fn a_reader_may_pause_for_longer_than_other_streams_wait_and_gets_every_byte() {
    const LINES: u8 = 64;
    /// The time after which streams are ended whose readers take nothing.
    const STALL: Duration = Duration::from_secs(2);
    let Site { fixture, model, agent, mut assignments } =
        Site::on(Fixture::start_impatient(STALL).await).await;
    let line = |number: u8| ExecSessionOutput::Stdout(ExecBytes::new(vec![number; MAX_CHUNK_BYTES]).unwrap());
    let (held, is_held) = oneshot::channel();
    let played = tokio::spawn(async move {
        let (id, _) = taken(&agent, &mut assignments).await;
        hand_all_over(&agent, id, (0..LINES).map(line), held).await;
        hand_over(&agent, id, WorkloadLogPart::End, "0").await;
        next_where(&mut assignments, |assigned| assigned.sessions.is_empty()).await;
    });
    let session = fixture.client.exec_session(&model.selector(), &unit("served/0"), request()).await.unwrap();
    let ExecSession { input, mut output } = session;
    assert_eq!(next(&mut output).await, ExecSessionOutput::Running);
    // The agent is told after ten seconds that there is no room, which is several times the time for other streams.
    let waiting = is_held.await.unwrap();
    assert!(waiting < usize::from(LINES / 2), "{waiting} parts were taken, and nobody reads");
    // Other requests over the same connection do not wait.
    fixture.add_model("other").await;
    for number in 0..LINES {
        assert_eq!(next(&mut output).await, line(number));
    }
    assert_eq!(next(&mut output).await, ExecSessionOutput::Exit(0));
    drop((input, output));
    played.await.unwrap();
    fixture.stop().await;
}

#[tokio::test]
async fn a_reader_of_a_workloads_log_may_pause_for_longer_than_other_streams_wait() {
    const LINES: usize = 64;
    /// The time after which streams are ended whose readers take nothing.
    const STALL: Duration = Duration::from_secs(2);
    let Site { fixture, model, agent, mut assignments } =
        Site::on(Fixture::start_impatient(STALL).await).await;
    let line = |number: usize| {
        let (time, service) = (String::new(), "web".to_owned());
        WorkloadLogLine { time, service, message: format!("{number:>60000}") }
    };
    let (held, is_held) = oneshot::channel();
    let played = tokio::spawn(async move {
        let assigned = next_where(&mut assignments, |assigned| !assigned.logs.is_empty()).await;
        let id = *assigned.logs.keys().next().unwrap();
        hand_over(&agent, id, WorkloadLogPart::Data, "HTTP/1.0 200 OK\r\n\r\n").await;
        hand_all_over(&agent, id, (0..LINES).map(line), held).await;
        hand_over(&agent, id, WorkloadLogPart::End, "").await;
        next_where(&mut assignments, |assigned| assigned.logs.is_empty()).await;
    });
    let (container, services) = ("web".parse().unwrap(), Vec::new());
    let query = WorkloadLogQuery { container, services, tail: None, follow: true };
    let logs = fixture.client.workload_logs(&model.selector(), &unit("served/0"), &query).await;
    let mut output = logs.unwrap();
    // The agent is told after ten seconds that there is no room, which is several times the time for other streams.
    let waiting = is_held.await.unwrap();
    assert!(waiting < LINES / 2, "{waiting} parts were taken, and nobody reads");
    for number in 0..LINES {
        assert_eq!(next(&mut output).await, line(number));
    }
    assert!(output.next().await.is_none(), "it goes on after its end");
    drop(output);
    played.await.unwrap();
    fixture.stop().await;
}

#[tokio::test]
async fn a_dialogue_ends_with_its_operator_and_is_for_users_who_may_write() {
    let Site { fixture, model, agent, mut assignments } = Site::new().await;
    let begin = async |client: &periapt_client::Client, name: &str, container: &str| {
        let request = ExecSessionRequest { container: container.parse().unwrap(), ..request() };
        client.exec_session(&model.selector(), &unit(name), request).await
    };
    let reader = with_token(&fixture, &join(&fixture, "reader").await.token);
    let grant = Command::GrantModel { user: "reader".parse().unwrap(), access: ModelAccess::Read };
    model.command(grant).await.unwrap();
    let refused = begin(&reader, "served/0", "web").await.map(drop);
    assert_eq!(code_of(refused), ErrorCode::PermissionDenied);
    for (name, container) in [("served/7", "web"), ("served/0", "db")] {
        assert_eq!(code_of(begin(&fixture.client, name, container).await.map(drop)), ErrorCode::NotFound);
    }

    let access = ModelAccess::Write;
    model.command(Command::GrantModel { user: "reader".parse().unwrap(), access }).await.unwrap();
    let (session, _) = tokio::join!(begin(&reader, "served/0", "web"), taken(&agent, &mut assignments));
    let mut session = session.unwrap();
    assert_eq!(next(&mut session.output).await, ExecSessionOutput::Running);
    model.command(Command::RevokeModel { user: "reader".parse().unwrap(), access }).await.unwrap();
    assert!(!matches!(session.output.next().await, Some(Ok(_))), "it goes on without access");
    next_where(&mut assignments, |assigned| assigned.sessions.is_empty()).await;

    // An operator who reads nothing loses it as well. The lines are more than the client takes in unread.
    model.command(Command::GrantModel { user: "reader".parse().unwrap(), access }).await.unwrap();
    let (unread, (id, _)) = tokio::join!(begin(&reader, "served/0", "web"), taken(&agent, &mut assignments));
    let chunk = ExecBytes::new(vec![7; MAX_CHUNK_BYTES]).unwrap();
    let line = serde_json::to_string(&ExecSessionOutput::Stdout(chunk)).unwrap() + "\n";
    for _ in 0..9 {
        hand_over(&agent, id, WorkloadLogPart::Data, &line).await;
    }
    model.command(Command::RevokeModel { user: "reader".parse().unwrap(), access }).await.unwrap();
    next_where(&mut assignments, |assigned| assigned.sessions.is_empty()).await;
    drop(unread.unwrap());

    let (session, (id, _)) =
        tokio::join!(begin(&fixture.client, "served/0", "web"), taken(&agent, &mut assignments));
    drop(session.unwrap());
    next_where(&mut assignments, |assigned| assigned.sessions.is_empty()).await;
    let gone = agent.client.exec_session_input(&agent.name, id).await;
    assert_eq!(code_of(gone), ErrorCode::NotFound);
    fixture.stop().await;
}
