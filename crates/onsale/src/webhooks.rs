//! Telling other systems what happens: what a message says, how it is signed, whom it may go to, and when it is tried again.
//! `worker/dispatcher.rs` carries them; which there are and how far each is, the store keeps.

pub(crate) mod message;
pub(crate) mod pause;
pub(crate) mod reach;
pub(crate) mod schedule;
pub(crate) mod sender;
pub(crate) mod sign;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use onsale_core::id::{EndpointId, EventNo};
use onsale_core::time::seconds;
use onsale_store::{EndpointStatus, WEBHOOK_ENDPOINTS_MAX, WebhookEndpoint};

use crate::desk::HomeNo;

use pause::Pauses;
use reach::Reach;
use sender::Sender;

const fn minutes(minutes: i64) -> i64 {
    seconds(60 * minutes)
}

const fn hours(hours: i64) -> i64 {
    minutes(60 * hours)
}

/// Longest address of an endpoint.
pub(crate) const URL_BYTES_MAX: usize = 2_048;
/// How long what was delivered is kept, to be shown and to be replayed.
pub(crate) const DELIVERED_KEPT_MS: i64 = 3 * hours(24);
/// How long the name of a deleted endpoint is kept. Far longer than any process can do without reading which there are.
pub(crate) const DELETED_KEPT_MS: i64 = 30 * hours(24);
/// How long messages are signed with the secret before, too: longer than a team needs to bring the new one to all its machines.
pub(crate) const BOTH_SECRETS_MS: i64 = hours(24);
/// How long a receiver may take to answer.
pub(crate) const TIMEOUT_MS: i64 = seconds(15);
/// Undelivered messages kept for an endpoint at a home. What there is beyond waits where it is, in the log.
pub(crate) const OPEN_MAX: u64 = 10_000;

// The messages of all endpoints fit into memory when they are counted or shown.
const _: () = assert!(OPEN_MAX * WEBHOOK_ENDPOINTS_MAX <= 1_000_000);

/// What this process needs to tell others.
pub(crate) struct Webhooks {
    pub(crate) sender: Sender,
    pub(crate) pauses: Pauses,
    /// The endpoints as they were read last: for while the main home is away.
    known: Mutex<Option<Arc<[WebhookEndpoint]>>>,
    /// Up to where an event had nothing to tell an endpoint when it was looked at last.
    quiet: Mutex<HashMap<(HomeNo, EndpointId, EventNo), u64>>,
}

impl Webhooks {
    pub(crate) fn new(reach: Reach) -> anyhow::Result<Webhooks> {
        Ok(Webhooks {
            sender: Sender::new(reach)?,
            pauses: Pauses::default(),
            known: Mutex::default(),
            quiet: Mutex::default(),
        })
    }

    /// Whether an event that has nothing to tell an endpoint up to a version stood there at the last look already. Then the
    /// progress may as well be taken note of; while its sale goes on, it would cost a transaction at each look.
    pub(crate) fn is_quiet(&self, home: HomeNo, endpoint: EndpointId, event: EventNo, version: u64) -> bool {
        let mut quiet = self.quiet.lock().expect("nothing panics under the lock");
        let before = quiet.insert((home, endpoint, event), version);
        let is_quiet = before == Some(version);
        if is_quiet {
            quiet.remove(&(home, endpoint, event));
        }
        is_quiet
    }

    /// An endpoint that is enabled, as it was read last.
    pub(crate) fn enabled(&self, id: EndpointId) -> Option<WebhookEndpoint> {
        let known = self.known()?;
        let is_it =
            |endpoint: &&WebhookEndpoint| endpoint.id == id && endpoint.status == EndpointStatus::Enabled;
        known.iter().find(is_it).cloned()
    }

    pub(crate) fn known(&self) -> Option<Arc<[WebhookEndpoint]>> {
        self.known.lock().expect("nothing panics under the lock").clone()
    }

    pub(crate) fn learn(&self, endpoints: Vec<WebhookEndpoint>) -> Arc<[WebhookEndpoint]> {
        let endpoints: Arc<[WebhookEndpoint]> = endpoints.into();
        *self.known.lock().expect("nothing panics under the lock") = Some(Arc::clone(&endpoints));
        endpoints
    }
}
