//! What all connections share, and how a call gets its answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::answer::Answer;
use super::books::{Books, Step};
use super::deliveries::Deliveries;
use super::events::Event;
use super::limits::DETACHED_MAX;
use super::operations::Request;
use super::unix_ms;
use super::webhooks::Mode;

/// The simulator behind its listener.
pub(super) struct Shared {
    /// A std mutex: it is never held across an await, and every transaction is short.
    books: Mutex<Books>,
    pub(super) deliveries: Arc<Deliveries>,
    /// Where a buyer is sent to prove who they are: the simulator's own address.
    pub(super) authentication_base: String,
    /// Work that goes on when its client has hung up. Here, so that it ends with the simulator.
    detached: Mutex<JoinSet<()>>,
    requests: AtomicU64,
}

impl Shared {
    /// Ready for connections.
    pub(super) fn new(seed: u64, deliveries: Arc<Deliveries>, authentication_base: String) -> Shared {
        Shared {
            books: Mutex::new(Books::new(seed)),
            deliveries,
            authentication_base,
            detached: Mutex::new(JoinSet::new()),
            requests: AtomicU64::new(0),
        }
    }

    /// The id of the request that came now.
    pub(super) fn request_id(&self) -> Arc<str> {
        format!("req_Sim{:011}", self.requests.fetch_add(1, Ordering::Relaxed)).into()
    }

    /// Reads or changes the books and sends what happened on its way, in the order it happened. What must be
    /// delivered before the reply is handed back instead.
    pub(super) fn transact<R>(&self, work: impl FnOnce(&mut Books, i64) -> R) -> (R, Vec<Arc<Event>>) {
        let mut books = self.books.lock().expect("no holder of this lock panics");
        let result = work(&mut books, unix_ms());
        let mut early = Vec::new();
        for outgoing in books.outgoing.drain(..) {
            if outgoing.authorizing && self.deliveries.settings().0 == Mode::Early {
                early.push(outgoing.event);
            } else {
                self.deliveries.dispatch(outgoing.event);
            }
        }
        (result, early)
    }

    /// Receives a call and brings it to its end.
    pub(super) async fn operate(self: &Arc<Self>, request: Request) -> Answer {
        let (step, early) = self.transact(|books, now_ms| books.receive(&request, now_ms));
        match step {
            Step::Done(answer) if early.is_empty() => answer,
            step => match self.detach(request, step, early) {
                // Without an answer the task was ended by a shutdown.
                Ok(replied) => replied.await.unwrap_or(Answer::Lost),
                Err(answer) => answer,
            },
        }
    }

    /// Goes on in a task of its own: the provider does when its client hangs up, but the connection's own task would
    /// end. When there are too many such tasks the call ends here and now.
    fn detach(
        self: &Arc<Self>,
        request: Request,
        step: Step,
        early: Vec<Arc<Event>>,
    ) -> Result<oneshot::Receiver<Answer>, Answer> {
        let mut detached = self.detached.lock().expect("no holder of this lock panics");
        while detached.try_join_next().is_some() {}
        if detached.len() >= DETACHED_MAX {
            return Err(self.end_now(&request, step, early));
        }
        let shared = self.clone();
        let (reply, replied) = oneshot::channel();
        detached.spawn(async move {
            let (answer, early) = match step {
                Step::Done(answer) => (answer, early),
                Step::Later(delay) => {
                    tokio::time::sleep(delay).await;
                    shared.transact(|books, now_ms| books.perform(&request, None, now_ms))
                }
            };
            for event in early {
                shared.deliveries.deliver_or_retry(event).await;
            }
            reply.send(answer).ok(); // The client may have hung up.
        });
        Ok(replied)
    }

    fn end_now(&self, request: &Request, step: Step, mut early: Vec<Arc<Event>>) -> Answer {
        let answer = match step {
            Step::Done(answer) => answer,
            Step::Later(_) => {
                let (answer, later) = self.transact(|books, now_ms| books.perform(request, None, now_ms));
                early.extend(later);
                answer
            }
        };
        for event in early {
            self.deliveries.dispatch(event);
        }
        answer
    }

    /// Ends the work that outlived its connection.
    pub(super) fn shut_down(&self) {
        self.detached.lock().expect("no holder of this lock panics").abort_all();
    }
}
