//! The outbox: who is to be told of what happens, how far each has an event's log, and what is still to be delivered. All of it
//! is upkeep. The log decides what there is to tell; here it is kept that it is told.
//!
//! Whatever belongs to an event is changed under the event's own row, locked against being moved: an event that is on its way
//! has its deliveries copied, and they must stay as they are meanwhile.

mod upkeep;

use onsale_core::id::{EndpointId, EventId, EventNo, MessageId};
use onsale_core::log::LogEntry;
use onsale_core::time::Timestamp;

use crate::error::StoreError;
use crate::names::Named;
use crate::store::Store;

/// Whether an endpoint is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointStatus {
    /// It is.
    Enabled,
    /// Not until an operator enables it again; then it is told what it has missed.
    Disabled,
    /// Never again. Its name is kept for a while.
    Deleted,
}

impl Named for EndpointStatus {
    const KIND: &'static str = "an endpoint's status";
    const WORDS: &'static [(Self, &'static str)] = &[
        (EndpointStatus::Enabled, "ENABLED"),
        (EndpointStatus::Disabled, "DISABLED"),
        (EndpointStatus::Deleted, "DELETED"),
    ];
}

/// How far a delivery is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryStatus {
    /// It is tried, again if need be.
    Pending,
    /// The other system has it.
    Delivered,
    /// It was tried as often as it is to be. It disables its endpoint, and is tried anew when that is enabled.
    Failed,
}

impl Named for DeliveryStatus {
    const KIND: &'static str = "a delivery's status";
    const WORDS: &'static [(Self, &'static str)] = &[
        (DeliveryStatus::Pending, "PENDING"),
        (DeliveryStatus::Delivered, "DELIVERED"),
        (DeliveryStatus::Failed, "FAILED"),
    ];
}

/// Another system that is told what happens.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookEndpoint {
    /// Its name.
    pub id: EndpointId,
    /// Where it is told.
    pub url: String,
    /// The types of messages that it wants; never changed.
    pub types: Vec<String>,
    /// What messages to it are signed with.
    pub secret: Vec<u8>,
    /// What they are signed with too, and until when.
    pub secret_before: Option<(Vec<u8>, Timestamp)>,
    /// Whether it is told.
    pub status: EndpointStatus,
    /// When it was made. What happens from then on is told.
    pub created_at: Timestamp,
    /// When it was enabled last.
    pub enabled_at: Timestamp,
    /// When it was disabled or deleted.
    pub disabled_at: Option<Timestamp>,
    /// Why it is disabled.
    pub disabled_reason: Option<String>,
}

/// An event whose log an endpoint doesn't have to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind {
    /// Which event.
    pub event: EventNo,
    /// Up to where it has the log; `None` when it has never had anything of it.
    pub progress: Option<u64>,
    /// Where the log ends.
    pub version: u64,
}

/// A message that is to be delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewDelivery {
    /// The entry of the log that it tells of.
    pub version: u64,
    /// Its name.
    pub message: MessageId,
    /// What it is about. Those about the same are delivered in order.
    pub subject: u128,
    /// When it happened.
    pub at: Timestamp,
}

/// Which delivery.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeliveryKey {
    /// Of which event.
    pub event: EventNo,
    /// To whom.
    pub endpoint: EndpointId,
    /// The entry of the log.
    pub version: u64,
}

/// A delivery whose time has come, and before which nothing about the same is left to deliver.
#[derive(Clone, Debug)]
pub struct DueDelivery {
    /// Which.
    pub key: DeliveryKey,
    /// Its name for the other system.
    pub message: MessageId,
    /// How often it was tried.
    pub tries: u32,
    /// The event's id; of the house, nothing that anyone knows.
    pub event_id: EventId,
    /// What happened.
    pub entry: LogEntry,
}

/// How a try has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Of which delivery.
    pub key: DeliveryKey,
    /// How often it had been tried before.
    pub tries: u32,
    /// The status of the answer; 0 for none.
    pub answer: u16,
    /// What went wrong.
    pub error: String,
    /// What follows.
    pub next: Next,
}

/// What follows from a try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing: it is delivered.
    Delivered,
    /// It is tried again, not before this.
    Again(Timestamp),
    /// It was the last.
    Failed,
}

/// A delivery as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryView {
    /// Which.
    pub key: DeliveryKey,
    /// Its name for the other system.
    pub message: MessageId,
    /// What it tells.
    pub entry: LogEntry,
    /// How far it is.
    pub status: DeliveryStatus,
    /// How often it was tried.
    pub tries: u32,
    /// When it is tried next, or was to be tried last.
    pub due_at: Timestamp,
    /// When something of this changed last.
    pub updated_at: Timestamp,
    /// The status of the last answer; 0 for none.
    pub last_status: u16,
    /// What went wrong last.
    pub last_error: String,
}

/// What is left to deliver to an endpoint at one home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenDeliveries {
    /// To whom.
    pub endpoint: EndpointId,
    /// How many.
    pub count: u64,
    /// When the oldest of it happened.
    pub oldest: Timestamp,
    /// When the last of it failed for good, and how.
    pub failed: Option<(Timestamp, u16, String)>,
}

/// Changes to the outbox. All of them may be repeated.
impl Store {
    /// Adds an endpoint; false when there are as many as there may be. Two processes that add the last at the same moment may
    /// both succeed: the bound is there to keep work bounded, and one more does no harm.
    pub async fn add_webhook_endpoint(&self, endpoint: WebhookEndpoint) -> Result<bool, StoreError> {
        self.upkeep(move |db| upkeep::add_endpoint(db, &endpoint)).await
    }

    /// Signs with a new secret, and until a time with the one before too; false when there is no such endpoint.
    pub async fn rotate_webhook_secret(
        &self,
        id: EndpointId,
        fresh: Vec<u8>,
        both_until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.upkeep(move |db| upkeep::rotate_secret(db, id, &fresh, both_until)).await
    }

    /// Enables an endpoint, later than all that has failed before; false when there is no such endpoint.
    pub async fn enable_webhook_endpoint(&self, id: EndpointId, now: Timestamp) -> Result<bool, StoreError> {
        self.upkeep(move |db| upkeep::enable_endpoint(db, id, now)).await
    }

    /// Disables an endpoint that was enabled last when the caller saw it; false when somebody has enabled it since, or it is
    /// disabled already.
    pub async fn disable_webhook_endpoint(
        &self,
        seen: &WebhookEndpoint,
        reason: String,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (id, enabled_at) = (seen.id, seen.enabled_at);
        self.upkeep(move |db| upkeep::disable_endpoint(db, id, enabled_at, &reason, now)).await
    }

    /// Deletes an endpoint, with its address and its secrets; false when there is none.
    pub async fn delete_webhook_endpoint(&self, id: EndpointId, now: Timestamp) -> Result<bool, StoreError> {
        self.upkeep(move |db| upkeep::delete_endpoint(db, id, now)).await
    }

    /// Forgets the names of endpoints that were deleted before a time.
    pub async fn forget_webhook_endpoints(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.upkeep(move |db| upkeep::forget_endpoints(db, before)).await
    }

    /// Begins to tell an endpoint of an event: what has happened since the endpoint was made. From which version on; `None` when
    /// the event isn't at home here.
    pub async fn begin_webhook_progress(
        &self,
        event: EventNo,
        endpoint: &WebhookEndpoint,
    ) -> Result<Option<u64>, StoreError> {
        let (id, types, since) = (endpoint.id, upkeep::types_json(&endpoint.types), endpoint.created_at);
        self.upkeep(move |db| upkeep::begin_progress(db, event, id, &types, since)).await
    }

    /// Takes note of what there is to tell between two versions of an event's log; false when another has done so, or the event
    /// isn't at home here.
    pub async fn advance_webhook_progress(
        &self,
        event: EventNo,
        endpoint: EndpointId,
        from: u64,
        to: u64,
        deliveries: Vec<NewDelivery>,
    ) -> Result<bool, StoreError> {
        self.upkeep(move |db| upkeep::advance_progress(db, event, endpoint, from, to, &deliveries)).await
    }

    /// Takes note of how tries have ended. What has moved to another home meanwhile is passed over, and is tried again there.
    pub async fn record_webhook_attempts(
        &self,
        mut attempts: Vec<Attempt>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        attempts.sort_by_key(|attempt| (attempt.key.event, attempt.key.endpoint));
        self.upkeep(move |db| upkeep::record_attempts(db, &attempts, now)).await
    }

    /// Makes due what was tried in vain before an endpoint was enabled; of one event at a time, and how many. None are left when
    /// it is none.
    pub async fn rearm_webhooks(
        &self,
        endpoint: &WebhookEndpoint,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let (id, enabled_at) = (endpoint.id, endpoint.enabled_at);
        self.upkeep(move |db| upkeep::rearm(db, id, enabled_at, now)).await
    }

    /// Makes one message due again; false when it isn't here.
    pub async fn replay_webhook(
        &self,
        endpoint: EndpointId,
        message: MessageId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.upkeep(move |db| upkeep::replay_one(db, endpoint, message, now)).await
    }

    /// Makes due again what was delivered and tells of a time since then; how many. Goes through all events, some deliveries in
    /// each transaction.
    pub async fn replay_webhooks(
        &self,
        endpoint: EndpointId,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let (mut all, mut after) = (0, Some((EventNo::HOUSE, 0)));
        while let Some(from) = after {
            let (some, next) =
                self.upkeep(move |db| upkeep::replay_some(db, endpoint, since, from, now)).await?;
            (all, after) = (all + some, next);
        }
        Ok(all)
    }

    /// Forgets some deliveries: those that were done before a time, and whatever was left for endpoints that are deleted. How
    /// many; none are left when it is none.
    pub async fn forget_webhooks(
        &self,
        before: Timestamp,
        deleted: Vec<EndpointId>,
    ) -> Result<u64, StoreError> {
        self.upkeep(move |db| upkeep::forget(db, before, &deleted)).await
    }
}
