//! The output of workloads, for operators who wait for it. The keeper reads no byte of it: it hands over what a pod writes.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use periapt_hook::WorkloadTarget;
use periapt_host_api::{
    RequestId,
    workload_log::{MAX_PART_BYTES, WorkloadLogOrder, WorkloadLogPart},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    controller::{Controller, hand_over},
    pods::PodStreams,
};

/// The pause between parts: what a workload writes meanwhile becomes one part.
const PAUSE: Duration = Duration::from_millis(200);

/// The orders that this agent serves. Dropping one ends it.
#[derive(Debug, Default)]
pub(super) struct LogOrders(BTreeMap<RequestId, AbortOnDropHandle<()>>);

impl LogOrders {
    /// Serves new orders, and ends those that are gone. `streams` is the way to the pods of an order's model.
    pub(super) fn follow<C: Controller>(
        &mut self,
        controller: &C,
        orders: BTreeMap<RequestId, WorkloadLogOrder>,
        streams: impl Fn(&WorkloadLogOrder) -> Option<PodStreams>,
    ) {
        self.0.retain(|id, _| orders.contains_key(id));
        for (id, order) in orders {
            let controller = controller.clone();
            self.0.entry(id).or_insert_with(|| {
                let streams = streams(&order);
                AbortOnDropHandle::new(tokio::spawn(async move {
                    // An earlier keeper may have begun it: its reader has what the pod would send again.
                    if let Err(error) =
                        hand_over(&controller, id, (WorkloadLogPart::Begun, Bytes::new())).await
                    {
                        tracing::debug!(unit = %order.unit, %error, "a log is not begun");
                        return;
                    }
                    let last = serve(&controller, id, &order, streams).await;
                    // An operator who has left needs no end.
                    let _ = hand_over(&controller, id, last).await;
                }))
            });
        }
    }
}

/// Hands the output of one order over, and returns its last part.
async fn serve<C: Controller>(
    controller: &C,
    id: RequestId,
    order: &WorkloadLogOrder,
    streams: Option<PodStreams>,
) -> (WorkloadLogPart, Bytes) {
    let failed = |reason: String| (WorkloadLogPart::Failed, Bytes::from(reason));
    let target = WorkloadTarget::Pebble(order.query.container.clone());
    let opened = match streams {
        Some(streams) => streams.open(&order.unit, &target).await,
        None => Err(format!("unit {} is not on this agent", order.unit)),
    };
    let mut stream =
        match opened.and_then(|stream| UnixStream::from_std(stream).map_err(|error| error.to_string())) {
            Ok(stream) => stream,
            Err(reason) => return failed(reason),
        };
    if let Err(error) = stream.write_all(order.query.request().as_bytes()).await {
        return failed(format!("the pod has ended: {error}"));
    }
    let mut bytes = vec![0; MAX_PART_BYTES];
    loop {
        let part = match stream.read(&mut bytes).await {
            Ok(read @ 1..) => Bytes::copy_from_slice(bytes.get(..read).unwrap_or_default()),
            Ok(0) | Err(_) => return (WorkloadLogPart::End, Bytes::new()),
        };
        if let Err(error) = hand_over(controller, id, (WorkloadLogPart::Data, part)).await {
            tracing::debug!(unit = %order.unit, %error, "the output of a workload is not handed over");
            return (WorkloadLogPart::End, Bytes::new());
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{ModelUuid, workload_log::WorkloadLogQuery};
    use uuid::Uuid;

    use super::*;
    use crate::keeper::tests::fake::FakeController;

    #[tokio::test]
    async fn an_order_is_taken_before_its_pod_is_asked() {
        let controller = FakeController::without_models();
        let query = WorkloadLogQuery {
            container: "web".parse().unwrap(),
            services: Vec::new(),
            tail: None,
            follow: true,
        };
        let order = WorkloadLogOrder { model: ModelUuid(Uuid::nil()), unit: "app/0".parse().unwrap(), query };
        let (mut orders, mut parts) = (LogOrders::default(), controller.operator.parts.subscribe());
        orders.follow(&controller, [(RequestId::from_random_bytes([7; 16]), order)].into(), |_| None);
        let parts = parts.wait_for(|parts| parts.len() == 2).await.unwrap().clone();
        let reason = Bytes::from_static(b"unit app/0 is not on this agent");
        assert_eq!(parts, [(WorkloadLogPart::Begun, Bytes::new()), (WorkloadLogPart::Failed, reason)]);
    }
}
