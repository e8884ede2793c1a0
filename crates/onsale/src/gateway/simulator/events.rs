//! Events: what happened to an intent, kept so that it can be told, and told again.

use std::collections::VecDeque;
use std::sync::Arc;

use super::intent::{Intent, Transition};
use super::limits::EVENTS_KEPT_MAX;

/// One thing that happened, with the intent as it was then.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: Arc<str>,
    pub(super) transition: Transition,
    /// Unix seconds.
    pub(super) created: i64,
    pub(super) intent: Arc<Intent>,
    pub(super) request_id: Option<Arc<str>>,
    pub(super) idempotency_key: Option<Arc<str>>,
}

/// Which event is wanted; what isn't named fits any.
#[derive(Default)]
pub(super) struct Wanted<'a> {
    pub(super) event_id: Option<&'a str>,
    pub(super) order_id: Option<&'a str>,
    pub(super) event_type: Option<&'a str>,
}

impl Wanted<'_> {
    fn fits(&self, event: &Event) -> bool {
        self.event_id.is_none_or(|id| *event.id == *id)
            && self.event_type.is_none_or(|event_type| event.transition.event_type() == event_type)
            && self.order_id.is_none_or(|order| event.intent.origin.order_id.as_deref() == Some(order))
    }
}

/// The events kept, oldest first.
#[derive(Default)]
pub(super) struct Events(VecDeque<Arc<Event>>);

impl Events {
    /// Keeps one more.
    pub(super) fn push(&mut self, event: Arc<Event>) {
        if self.0.len() == EVENTS_KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }

    /// The latest that is wanted. A scan: only the control surface and reads of single events ask.
    pub(super) fn latest(&self, wanted: &Wanted<'_>) -> Option<Arc<Event>> {
        self.0.iter().rev().find(|event| wanted.fits(event)).cloned()
    }

    /// All of them, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.0.iter().rev()
    }
}
