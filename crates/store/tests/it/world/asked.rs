//! Requests that wait for their answers while the test goes on.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use onsale_core::command::{Decision, Outcome, Request};
use onsale_store::{Store, SubmitError};

type Answer = Result<Decision, SubmitError>;

/// A request in the writer's queue, or its answer.
pub(crate) struct Asked<'a> {
    waiting: Pin<Box<dyn Future<Output = Answer> + 'a>>,
    answer: Option<Answer>,
}

/// Queues a request: when this returns it stands in the line, or has been turned away.
pub(crate) fn ask<'a>(store: &'a Store, request: Request, deadline: Option<Instant>) -> Asked<'a> {
    let mut asked = Asked { waiting: Box::pin(store.submit(request, deadline)), answer: None };
    asked.poll();
    asked
}

impl Asked<'_> {
    /// The answer, once it is there.
    pub(crate) fn poll(&mut self) -> Option<&Answer> {
        if self.answer.is_none()
            && let Poll::Ready(answer) = self.waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.answer = Some(answer);
        }
        self.answer.as_ref()
    }

    /// Waits for the answer.
    pub(crate) fn answer(mut self) -> Answer {
        super::wait_until("a request is answered", || self.poll().is_some());
        self.answer.expect("it is there")
    }

    /// Waits for a decision.
    pub(crate) fn outcome(self) -> Outcome {
        self.answer().expect("the store decides").outcome
    }
}

/// Waits for upkeep, which may run on the writer's thread.
pub(crate) fn done<R>(upkeep: impl Future<Output = R>) -> R {
    let mut upkeep = std::pin::pin!(upkeep);
    let mut result = None;
    super::wait_until("the upkeep is done", || {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(ready) = upkeep.as_mut().poll(&mut context) {
            result = Some(ready);
        }
        result.is_some()
    });
    result.expect("it is there")
}
