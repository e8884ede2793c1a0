//! Those who wait for an order to change. A commit wakes only the waiters of the orders it touched.

use std::collections::HashMap;
use std::sync::Mutex;

use onsale_core::id::{EventNo, OrderId};
use onsale_store::Committed;
use tokio::sync::oneshot;

/// Waiters at once. Each is an open connection; beyond this an order is answered as it stands.
const WAITERS_MAX: usize = 16_384;

/// Waiters by order.
#[derive(Default)]
pub(crate) struct OrderWatch(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    by_order: HashMap<OrderId, Vec<oneshot::Sender<()>>>,
    count: usize,
}

impl OrderWatch {
    /// A signal for the next change of an order; `None` when too many wait.
    pub(crate) fn next_change(&self, order: OrderId) -> Option<oneshot::Receiver<()>> {
        let mut waiting = self.0.lock().expect("nothing panics under the watch's lock");
        if waiting.count >= WAITERS_MAX {
            // Those who have gone leave their places behind until someone looks.
            waiting.by_order.retain(|_, waiters| {
                waiters.retain(|waiter| !waiter.is_closed());
                !waiters.is_empty()
            });
            waiting.count = waiting.by_order.values().map(Vec::len).sum();
            if waiting.count >= WAITERS_MAX {
                return None;
            }
        }
        let (wake, signal) = oneshot::channel();
        waiting.by_order.entry(order).or_default().push(wake);
        waiting.count += 1;
        Some(signal)
    }

    /// Wakes the waiters of the orders a commit touched.
    pub(crate) fn follow(&self, committed: &Committed) {
        let mut waiting = self.0.lock().expect("nothing panics under the watch's lock");
        if waiting.count == 0 {
            return;
        }
        for order in committed.log.iter().filter_map(|entry| entry.kind.order()) {
            let waiters = waiting.by_order.remove(&order).unwrap_or_default();
            waiting.count -= waiters.len();
            for waiter in waiters {
                let _ = waiter.send(());
            }
        }
    }

    /// Wakes the waiters of all orders of an event: which of them have changed isn't known.
    pub(crate) fn wake_event(&self, event: EventNo) {
        let mut waiting = self.0.lock().expect("nothing panics under the watch's lock");
        let woken: Vec<_> = waiting.by_order.extract_if(|order, _| order.event() == event).collect();
        for waiter in woken.into_iter().flat_map(|(_, waiters)| waiters) {
            waiting.count -= 1;
            let _ = waiter.send(());
        }
    }

    /// Wakes everyone: the server is stopping.
    pub(crate) fn wake_all(&self) {
        let mut waiting = self.0.lock().expect("nothing panics under the watch's lock");
        waiting.count = 0;
        for waiter in waiting.by_order.drain().flat_map(|(_, waiters)| waiters) {
            let _ = waiter.send(());
        }
    }
}
