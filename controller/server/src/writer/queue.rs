//! The writer's queue: one queue for each model, served in turn by bytes, bounded in total and for each model.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{ErrorCode, ModelUuid, Refusal};
use tokio::{sync::Notify, time::Instant};

use crate::metrics::metrics;

/// The most bytes of queued requests: some seconds of work for the writer.
const MAX_BYTES: usize = 64 << 20;
/// The most queued commands.
const MAX_COUNT: usize = 8_192;
/// The divisor of both bounds for one model, so that one model never locks out the others.
const MODEL_SHARE: usize = 2;
/// The bytes that a queue may send in one turn. The unused rest is kept for its next turn.
const QUANTUM: usize = 64 << 10;
/// The least weight of a command, in bytes. Evaluating a small command has a cost, too.
const LEAST_WEIGHT: usize = 512;

/// The key of a command's queue. Commands of one queue are evaluated in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueKey {
    /// Commands about no model.
    Controller,
    /// Commands about one model.
    Model(ModelUuid),
}

/// Formats a key for the digests of commands, which differ between queues.
impl fmt::Display for QueueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller => f.write_str("controller"),
            Self::Model(model) => write!(f, "model {model}"),
        }
    }
}

/// A bounded, fair queue of many senders and one receiver.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    queues: Mutex<KeyedQueues<T>>,
    filled: Notify,
}

#[derive(Debug)]
struct KeyedQueues<T> {
    queues: BTreeMap<QueueKey, Waiting<T>>,
    /// The queue that was served last.
    last: Option<QueueKey>,
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
        let queues = KeyedQueues { queues: BTreeMap::new(), last: None, bytes: 0, count: 0, closed: false };
        Self { queues: Mutex::new(queues), filled: Notify::new() }
    }
}

impl<T> Queue<T> {
    /// Adds jobs to a queue: all, or none if there is no room. `bytes` is their total weight.
    pub(crate) fn push(&self, key: QueueKey, bytes: usize, jobs: Vec<T>) -> Result<(), Refusal> {
        let count = jobs.len();
        if let Err(refusal) = self.lock().push(key, bytes, jobs) {
            metrics().queue_refused.add(&[], count as u64);
            return Err(refusal);
        }
        self.filled.notify_one();
        Ok(())
    }

    /// Adds jobs at once, each to its queue, so that one batch may take all of them. Each weighs `weight` bytes. Returns the
    /// outcomes in order: a queue without room refuses a job, and takes the others.
    pub(crate) fn push_each(&self, weight: usize, jobs: Vec<(QueueKey, T)>) -> Vec<Result<(), Refusal>> {
        let mut queues = self.lock();
        let pushed = jobs.into_iter().map(|(key, job)| queues.push(key, weight, vec![job]));
        let pushed: Vec<_> = pushed.collect();
        drop(queues);
        let refused = pushed.iter().filter(|pushed| pushed.is_err()).count();
        if refused > 0 {
            metrics().queue_refused.add(&[], refused as u64);
        }
        if refused < pushed.len() {
            self.filled.notify_one();
        }
        pushed
    }

    /// Puts jobs back that were taken and had no effect: before all others of their queues, in order. They had room, so none
    /// is refused; a closed queue drops them.
    pub(crate) fn put_back(&self, jobs: Vec<(QueueKey, T)>) {
        if jobs.is_empty() {
            return;
        }
        let mut queues = self.lock();
        for (key, job) in jobs.into_iter().rev() {
            queues.put_back(key, job);
        }
        queues.measure();
        drop(queues);
        self.filled.notify_one();
    }

    /// Waits until the queue has jobs, and takes up to `max_bytes` and `max_count`, but at least one.
    pub(crate) async fn take(&self, max_bytes: usize, max_count: usize) -> Vec<T> {
        self.take_weighed(max_bytes, max_count).await.0
    }

    /// Takes jobs as [`Self::take`] does, and also returns their weight in bytes.
    pub(crate) async fn take_weighed(&self, max_bytes: usize, max_count: usize) -> (Vec<T>, usize) {
        loop {
            let taken = self.take_waiting(max_bytes, max_count);
            if !taken.0.is_empty() {
                return taken;
            }
            self.filled.notified().await;
        }
    }

    fn take_waiting(&self, max_bytes: usize, max_count: usize) -> (Vec<T>, usize) {
        let mut queues = self.lock();
        let before = queues.bytes;
        let taken = queues.take(max_bytes, max_count);
        queues.measure();
        (taken, before.saturating_sub(queues.bytes))
    }

    /// Refuses new jobs from now on, and drops the queued ones.
    pub(crate) fn close(&self) {
        let mut queues = self.lock();
        queues.closed = true;
        queues.queues.clear();
        (queues.bytes, queues.count) = (0, 0);
        queues.measure();
    }

    fn lock(&self) -> MutexGuard<'_, KeyedQueues<T>> {
        // Each call leaves the queues consistent.
        self.queues.lock()
    }
}

impl<T> KeyedQueues<T> {
    fn push(&mut self, key: QueueKey, bytes: usize, jobs: Vec<T>) -> Result<(), Refusal> {
        if self.closed {
            return Err(Refusal::new(ErrorCode::TryAgain, "the controller is shutting down"));
        }
        let weight = bytes.div_ceil(jobs.len().max(1)).max(LEAST_WEIGHT);
        let (bytes, count) = (weight * jobs.len(), jobs.len());
        let (queued_bytes, queued_count) =
            self.queues.get(&key).map_or((0, 0), |waiting| (waiting.bytes, waiting.jobs.len()));
        let full = self.bytes + bytes > MAX_BYTES
            || self.count + count > MAX_COUNT
            || queued_bytes + bytes > MAX_BYTES / MODEL_SHARE
            || queued_count + count > MAX_COUNT / MODEL_SHARE;
        if full {
            let message = format!("{} commands wait already; try again later", self.count);
            return Err(Refusal::new(ErrorCode::TooManyRequests, message));
        }
        let waiting =
            self.queues.entry(key).or_insert_with(|| Waiting { jobs: VecDeque::new(), bytes: 0, credit: 0 });
        let now = Instant::now();
        waiting.jobs.extend(jobs.into_iter().map(|job| (weight, now, job)));
        waiting.bytes += bytes;
        self.bytes += bytes;
        self.count += count;
        self.measure();
        Ok(())
    }

    fn put_back(&mut self, key: QueueKey, job: T) {
        if self.closed {
            return;
        }
        let waiting =
            self.queues.entry(key).or_insert_with(|| Waiting { jobs: VecDeque::new(), bytes: 0, credit: 0 });
        waiting.jobs.push_front((LEAST_WEIGHT, Instant::now(), job));
        waiting.bytes += LEAST_WEIGHT;
        self.bytes += LEAST_WEIGHT;
        self.count += 1;
    }

    /// Tells the metrics how much waits.
    fn measure(&self) {
        metrics().queue_commands.set(&[], self.count as u64);
        metrics().queue_bytes.set(&[], self.bytes as u64);
    }

    /// Takes jobs by deficit round robin: each queue in turn gets credit, and sends the jobs that it can pay for.
    fn take(&mut self, max_bytes: usize, max_count: usize) -> Vec<T> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(key) = self.next_key() {
            let Some(waiting) = self.queues.get_mut(&key) else { break };
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
            self.last = Some(key);
            if waiting.jobs.is_empty() {
                self.queues.remove(&key);
            }
        }
        taken
    }

    fn next_key(&self) -> Option<QueueKey> {
        use std::ops::Bound::{Excluded, Unbounded};
        let after = match self.last {
            Some(last) => self.queues.range((Excluded(last), Unbounded)).next(),
            None => None,
        };
        after.or_else(|| self.queues.first_key_value()).map(|(key, _)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(number: u128) -> QueueKey {
        QueueKey::Model(ModelUuid(uuid::Uuid::from_u128(number)))
    }

    fn queues() -> KeyedQueues<&'static str> {
        KeyedQueues { queues: BTreeMap::new(), last: None, bytes: 0, count: 0, closed: false }
    }

    #[test]
    fn a_model_with_much_to_do_waits_for_one_with_little() {
        let mut queues = queues();
        queues.push(model(1), QUANTUM * 6, vec!["a1", "a2", "a3", "a4", "a5", "a6"]).unwrap();
        queues.push(model(2), QUANTUM, vec!["b1"]).unwrap();
        assert_eq!(queues.take(usize::MAX, 3), ["a1", "b1", "a2"]);
        queues.push(model(3), QUANTUM, vec!["c1"]).unwrap();
        assert_eq!(queues.take(usize::MAX, 99), ["c1", "a3", "a4", "a5", "a6"]);
        assert_eq!((queues.bytes, queues.count), (0, 0));
    }

    #[test]
    fn a_lane_keeps_its_order_and_a_batch_its_bound() {
        let mut queues = queues();
        queues.push(model(1), 4 * 1_000, vec!["1", "2", "3", "4"]).unwrap();
        assert_eq!(queues.take(2_500, 99), ["1", "2"]);
        assert_eq!(queues.take(2_500, 99), ["3", "4"]);
        assert!(queues.take(2_500, 99).is_empty());
    }

    #[test]
    fn what_is_larger_than_a_batch_is_a_batch_of_its_own() {
        let mut queues = queues();
        queues.push(model(1), 10 << 20, vec!["large"]).unwrap();
        queues.push(model(1), 10, vec!["small"]).unwrap();
        assert_eq!(queues.take(1 << 20, 99), ["large"]);
        assert_eq!(queues.take(1 << 20, 99), ["small"]);
    }

    #[test]
    fn past_its_bound_a_lane_is_full_and_the_others_are_not() {
        let mut queues = queues();
        for _ in 0..MAX_COUNT / MODEL_SHARE {
            queues.push(model(1), 1, vec!["x"]).unwrap();
        }
        assert_eq!(queues.push(model(1), 1, vec!["x"]).unwrap_err().code, ErrorCode::TooManyRequests);
        queues.push(model(2), 1, vec!["y"]).unwrap();
        let before = queues.count;
        let too_large = queues.push(model(2), MAX_BYTES, vec!["y", "z"]).unwrap_err();
        assert_eq!(too_large.code, ErrorCode::TooManyRequests);
        assert_eq!(queues.count, before);
    }

    #[tokio::test]
    async fn jobs_of_several_queues_come_at_once_and_one_without_room_stops_no_other() {
        let queue = Queue::default();
        for _ in 0..MAX_COUNT / MODEL_SHARE {
            queue.push(model(1), 1, vec!["x"]).unwrap();
        }
        let jobs = vec![(model(2), "a"), (model(1), "full"), (model(3), "b"), (model(2), "c")];
        let pushed: Vec<_> = queue.push_each(1, jobs).into_iter().map(|pushed| pushed.is_ok()).collect();
        assert_eq!(pushed, [true, false, true, true]);
        let (taken, weight) = queue.take_weighed(usize::MAX, usize::MAX).await;
        let others: Vec<_> = taken.iter().copied().filter(|job| *job != "x").collect();
        assert_eq!(others, ["a", "c", "b"], "each queue keeps its order");
        assert_eq!(weight, (MAX_COUNT / MODEL_SHARE + 3) * LEAST_WEIGHT);
    }

    #[tokio::test]
    async fn what_is_put_back_is_taken_before_what_came_later_and_in_its_order() {
        let queue = Queue::default();
        queue.push(model(1), 3, vec!["1", "2", "3"]).unwrap();
        let taken = queue.take(usize::MAX, 2).await;
        queue.push(model(2), 1, vec!["other"]).unwrap();
        queue.put_back(taken.into_iter().map(|job| (model(1), job)).collect());
        let again = queue.take(usize::MAX, usize::MAX).await;
        let of_model: Vec<_> = again.into_iter().filter(|job| *job != "other").collect();
        assert_eq!(of_model, ["1", "2", "3"]);
        let empty = queue.lock();
        assert_eq!((empty.bytes, empty.count), (0, 0));
    }

    #[tokio::test]
    async fn a_closed_queue_refuses() {
        let queue = Queue::default();
        queue.push(QueueKey::Controller, 1, vec![1]).unwrap();
        assert_eq!(queue.take(99, 99).await, [1]);
        queue.close();
        assert_eq!(queue.push(QueueKey::Controller, 1, vec![2]).unwrap_err().code, ErrorCode::TryAgain);
        let refused = queue.push_each(1, vec![(QueueKey::Controller, 3)]);
        assert!(refused.iter().all(Result::is_err) && refused.len() == 1);
        queue.put_back(vec![(QueueKey::Controller, 4)]);
        assert!(queue.lock().queues.is_empty());
    }
}
