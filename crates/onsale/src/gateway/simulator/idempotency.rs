//! Idempotency keys: the first answer, kept and given again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::answer::Reply;
use super::error::ApiError;
use super::limits::KEYS_KEPT_MAX;

/// What is known of a key.
struct Entry {
    fingerprint: u64,
    /// The amount that the first request was about; by the time of a replay the intent may say another.
    amount: Option<i64>,
    /// Nothing while the first request runs.
    reply: Option<Reply>,
}

/// The keys seen, of the one account that the simulator has.
#[derive(Default)]
pub(super) struct Keys {
    entries: HashMap<Arc<str>, Entry>,
    /// Finished keys, oldest first. Running ones are bounded by the calls that run.
    finished: VecDeque<Arc<str>>,
}

/// What a request with a key is.
pub(super) enum Arrival {
    Fresh,
    Replay { reply: Reply, amount: Option<i64> },
    Clash(ApiError),
}

impl Keys {
    /// A request arrives; when it is fresh its key runs until [`finish`](Keys::finish) or [`forget`](Keys::forget).
    pub(super) fn arrive(&mut self, key: &Arc<str>, fingerprint: u64, amount: Option<i64>) -> Arrival {
        let Some(entry) = self.entries.get(key) else {
            self.entries.insert(key.clone(), Entry { fingerprint, amount, reply: None });
            return Arrival::Fresh;
        };
        match &entry.reply {
            _ if entry.fingerprint != fingerprint => Arrival::Clash(ApiError::key_reused()),
            None => Arrival::Clash(ApiError::key_in_use()),
            Some(reply) => Arrival::Replay { reply: reply.clone(), amount: entry.amount },
        }
    }

    /// Keeps the answer of a key that runs.
    pub(super) fn finish(&mut self, key: &Arc<str>, reply: Reply) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.reply = Some(reply);
        self.finished.push_back(key.clone());
        if self.finished.len() > KEYS_KEPT_MAX
            && let Some(oldest) = self.finished.pop_front()
        {
            self.entries.remove(&oldest);
        }
    }

    /// Nothing was executed: the key may be used afresh.
    pub(super) fn forget(&mut self, key: &Arc<str>) {
        self.entries.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_runs_then_answers_again_and_knows_its_parameters() {
        let mut keys = Keys::default();
        let key: Arc<str> = "k".into();
        assert!(matches!(keys.arrive(&key, 1, Some(5)), Arrival::Fresh));
        let clash = |arrival| match arrival {
            Arrival::Clash(error) => error.status,
            Arrival::Fresh | Arrival::Replay { .. } => 0,
        };
        assert_eq!(clash(keys.arrive(&key, 1, Some(5))), 409);
        assert_eq!(clash(keys.arrive(&key, 2, Some(6))), 400);
        keys.forget(&key);
        assert!(matches!(keys.arrive(&key, 2, Some(6)), Arrival::Fresh));
        keys.finish(&key, Reply::Error(ApiError::internal().into()));
        assert!(matches!(keys.arrive(&key, 2, Some(7)), Arrival::Replay { amount: Some(6), .. }));
        assert_eq!(clash(keys.arrive(&key, 1, Some(5))), 400);
    }
}
