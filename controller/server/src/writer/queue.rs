//! The writer's queue: one lane for each model, served in turn by bytes, bounded in total and for each lane.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{ErrorCode, ModelUuid, Refusal};
use tokio::{sync::Notify, time::Instant};

use crate::metrics::metrics;

/// The most bytes of queued requests: some seconds of work for the writer.
const MAX_BYTES: usize = 64 << 20;
/// The most queued commands.
const MAX_COUNT: usize = 8_192;
/// The divisor of both bounds for one lane, so that one model never locks out the others.
const LANE_SHARE: usize = 2;
/// The bytes that a lane may send in one turn. The unused rest is kept for its next turn.
const QUANTUM: usize = 64 << 10;
/// The least weight of a command, in bytes. Evaluating a small command has a cost, too.
const LEAST_WEIGHT: usize = 512;

/// The lane of a command. Commands of one lane are evaluated in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// Commands about no model.
    Controller,
    /// Commands about one model.
    Model(ModelUuid),
}

/// A bounded, fair queue of many senders and one receiver.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    lanes: Mutex<Lanes<T>>,
    filled: Notify,
}

#[derive(Debug)]
struct Lanes<T> {
    lanes: BTreeMap<Lane, Waiting<T>>,
    /// The lane that was served last.
    last: Option<Lane>,
    bytes: usize,
    count: usize,
    closed: bool,
}

#[derive(Debug)]
struct Waiting<T> {
    /// Each with its weight, and the time since which it waits.
    jobs: VecDeque<(usize, Instant, T)>,
    bytes: usize,
    credit: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let lanes = Lanes { lanes: BTreeMap::new(), last: None, bytes: 0, count: 0, closed: false };
        Self { lanes: Mutex::new(lanes), filled: Notify::new() }
    }
}

impl<T> Queue<T> {
    /// Adds jobs to a lane: all, or none if there is no room. `bytes` is their total weight.
    pub(crate) fn push(&self, lane: Lane, bytes: usize, jobs: Vec<T>) -> Result<(), Refusal> {
        let count = jobs.len();
        if let Err(refusal) = self.lock().push(lane, bytes, jobs) {
            metrics().queue_refused.add(&[], count as u64);
            return Err(refusal);
        }
        self.filled.notify_one();
        Ok(())
    }

    /// Waits until the queue has jobs, and takes up to `max_bytes` and `max_count`, but at least one.
    pub(crate) async fn take(&self, max_bytes: usize, max_count: usize) -> Vec<T> {
        loop {
            let taken = self.take_waiting(max_bytes, max_count);
            if !taken.is_empty() {
                return taken;
            }
            self.filled.notified().await;
        }
    }

    fn take_waiting(&self, max_bytes: usize, max_count: usize) -> Vec<T> {
        let mut lanes = self.lock();
        let taken = lanes.take(max_bytes, max_count);
        lanes.measure();
        taken
    }

    /// Refuses new jobs from now on, and drops the queued ones.
    pub(crate) fn close(&self) {
        let mut lanes = self.lock();
        lanes.closed = true;
        lanes.lanes.clear();
        (lanes.bytes, lanes.count) = (0, 0);
        lanes.measure();
    }

    fn lock(&self) -> MutexGuard<'_, Lanes<T>> {
        // Each call leaves the lanes consistent.
        self.lanes.lock()
    }
}

impl<T> Lanes<T> {
    fn push(&mut self, lane: Lane, bytes: usize, jobs: Vec<T>) -> Result<(), Refusal> {
        if self.closed {
            return Err(Refusal::new(ErrorCode::TryAgain, "the controller is shutting down"));
        }
        let weight = bytes.div_ceil(jobs.len().max(1)).max(LEAST_WEIGHT);
        let (bytes, count) = (weight * jobs.len(), jobs.len());
        let (lane_bytes, lane_count) =
            self.lanes.get(&lane).map_or((0, 0), |waiting| (waiting.bytes, waiting.jobs.len()));
        let full = self.bytes + bytes > MAX_BYTES
            || self.count + count > MAX_COUNT
            || lane_bytes + bytes > MAX_BYTES / LANE_SHARE
            || lane_count + count > MAX_COUNT / LANE_SHARE;
        if full {
            let message = format!("{} commands wait already; try again later", self.count);
            return Err(Refusal::new(ErrorCode::TooManyRequests, message));
        }
        let waiting =
            self.lanes.entry(lane).or_insert_with(|| Waiting { jobs: VecDeque::new(), bytes: 0, credit: 0 });
        let now = Instant::now();
        waiting.jobs.extend(jobs.into_iter().map(|job| (weight, now, job)));
        waiting.bytes += bytes;
        self.bytes += bytes;
        self.count += count;
        self.measure();
        Ok(())
    }

    /// Tells the metrics how much waits.
    fn measure(&self) {
        metrics().queue_commands.set(&[], self.count as u64);
        metrics().queue_bytes.set(&[], self.bytes as u64);
    }

    /// Takes jobs by deficit round robin: each lane in turn gets credit, and sends the jobs that it can pay for.
    fn take(&mut self, max_bytes: usize, max_count: usize) -> Vec<T> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(lane) = self.next_lane() {
            let Some(waiting) = self.lanes.get_mut(&lane) else { break };
            waiting.credit += QUANTUM;
            while let Some((weight, since, _)) = waiting.jobs.front() {
                let (weight, since) = (*weight, *since);
                let fits = taken.is_empty() || (bytes + weight <= max_bytes && taken.len() < max_count);
                if !fits {
                    return taken;
                }
                if weight > waiting.credit {
                    break;
                }
                waiting.credit -= weight;
                waiting.bytes -= weight;
                self.bytes -= weight;
                self.count -= 1;
                bytes += weight;
                taken.extend(waiting.jobs.pop_front().map(|(_, _, job)| job));
                metrics().queue_wait.took(&[], since.elapsed());
            }
            self.last = Some(lane);
            if waiting.jobs.is_empty() {
                self.lanes.remove(&lane);
            }
        }
        taken
    }

    fn next_lane(&self) -> Option<Lane> {
        use std::ops::Bound::{Excluded, Unbounded};
        let after = match self.last {
            Some(last) => self.lanes.range((Excluded(last), Unbounded)).next(),
            None => None,
        };
        after.or_else(|| self.lanes.first_key_value()).map(|(lane, _)| *lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(number: u128) -> Lane {
        Lane::Model(ModelUuid(uuid::Uuid::from_u128(number)))
    }

    fn lanes() -> Lanes<&'static str> {
        Lanes { lanes: BTreeMap::new(), last: None, bytes: 0, count: 0, closed: false }
    }

    #[test]
    fn a_model_with_much_to_do_waits_for_one_with_little() {
        let mut lanes = lanes();
        lanes.push(model(1), QUANTUM * 6, vec!["a1", "a2", "a3", "a4", "a5", "a6"]).unwrap();
        lanes.push(model(2), QUANTUM, vec!["b1"]).unwrap();
        assert_eq!(lanes.take(usize::MAX, 3), ["a1", "b1", "a2"]);
        lanes.push(model(3), QUANTUM, vec!["c1"]).unwrap();
        assert_eq!(lanes.take(usize::MAX, 99), ["c1", "a3", "a4", "a5", "a6"]);
        assert_eq!((lanes.bytes, lanes.count), (0, 0));
    }

    #[test]
    fn a_lane_keeps_its_order_and_a_batch_its_bound() {
        let mut lanes = lanes();
        lanes.push(model(1), 4 * 1_000, vec!["1", "2", "3", "4"]).unwrap();
        assert_eq!(lanes.take(2_500, 99), ["1", "2"]);
        assert_eq!(lanes.take(2_500, 99), ["3", "4"]);
        assert!(lanes.take(2_500, 99).is_empty());
    }

    #[test]
    fn what_is_larger_than_a_batch_is_a_batch_of_its_own() {
        let mut lanes = lanes();
        lanes.push(model(1), 10 << 20, vec!["large"]).unwrap();
        lanes.push(model(1), 10, vec!["small"]).unwrap();
        assert_eq!(lanes.take(1 << 20, 99), ["large"]);
        assert_eq!(lanes.take(1 << 20, 99), ["small"]);
    }

    #[test]
    fn past_its_bound_a_lane_is_full_and_the_others_are_not() {
        let mut lanes = lanes();
        for _ in 0..MAX_COUNT / LANE_SHARE {
            lanes.push(model(1), 1, vec!["x"]).unwrap();
        }
        assert_eq!(lanes.push(model(1), 1, vec!["x"]).unwrap_err().code, ErrorCode::TooManyRequests);
        lanes.push(model(2), 1, vec!["y"]).unwrap();
        let before = lanes.count;
        let too_large = lanes.push(model(2), MAX_BYTES, vec!["y", "z"]).unwrap_err();
        assert_eq!(too_large.code, ErrorCode::TooManyRequests);
        assert_eq!(lanes.count, before);
    }

    #[tokio::test]
    async fn a_closed_queue_refuses() {
        let queue = Queue::default();
        queue.push(Lane::Controller, 1, vec![1]).unwrap();
        assert_eq!(queue.take(99, 99).await, [1]);
        queue.close();
        assert_eq!(queue.push(Lane::Controller, 1, vec![2]).unwrap_err().code, ErrorCode::TryAgain);
    }
}
