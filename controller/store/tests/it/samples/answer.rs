//! Kept answers.

use periapt_host_api::{
    ActionOperationId, ErrorCode, Refusal, RequestId, TaskId,
    action::{ActionReceiver, EnqueuedOperation, EnqueuedTask},
    command::{Answer, CommandResult},
    secret::Sealed,
};
use periapt_model::entity::{AnswerKey, KeptAnswer, KeptOutput, UnitRange};
use uuid::Uuid;

use super::{Named, awkward_text, digest, every, parse, time};

pub(crate) fn answers() -> Named<KeptAnswer> {
    let range = || UnitRange { first: parse("wordpress/3"), count: 40 };
    let outputs = every!(KeptOutput {
        "done": KeptOutput::Done => KeptOutput::Done,
        "units": KeptOutput::Units(_) => KeptOutput::Units(range()),
        "application": KeptOutput::Application { .. } =>
            KeptOutput::Application { name: parse("wordpress"), units: range() },
        "operation": KeptOutput::Answer(_) => KeptOutput::Answer(Answer::Operation(EnqueuedOperation {
            id: ActionOperationId(4),
            tasks: vec![
                EnqueuedTask {
                    receiver: ActionReceiver::Unit(parse("wordpress/3")),
                    task: CommandResult::Ok((TaskId(5), parse("wordpress/3"))),
                },
                EnqueuedTask {
                    receiver: ActionReceiver::Leader(parse("mysql")),
                    task: CommandResult::Error(Refusal::new(ErrorCode::NotFound, awkward_text())),
                },
            ],
        })),
    });
    let answer = |output, response| KeptAnswer {
        key: AnswerKey {
            user: parse("jane"),
            request: RequestId(Uuid::from_u128(0x0190_a7c4_5b1e_4d30_8c52_4f6e_9a01_b2d6)),
            index: 2,
        },
        user_uuid: Uuid::from_u128(0x0190_a7c4_5b1e_7d30_8c52_4f6e_9a01_b2d5),
        command: digest("command"),
        at: time(80),
        output,
        response,
    };
    let sealed = Sealed { checksum: digest("checksum").to_string(), bytes: "c2VhbGVk".into() };
    let with_token = ("token", answer(KeptOutput::Done, Some(sealed)));
    outputs.into_iter().map(|(name, output)| (name, answer(output, None))).chain([with_token]).collect()
}
