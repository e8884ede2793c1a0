//! Every maximum of the simulator, each with its reason.

use std::time::Duration;

/// Connections served at once; one more waits in the listen queue. A client pool is a few hundred.
pub(super) const CONNECTIONS_MAX: usize = 2_048;
/// The largest request body: 50 metadata entries at their longest, percent-encoded, fit into it.
pub(super) const BODY_BYTES_MAX: usize = 128 * 1024;

/// Payment intents kept. A provider never forgets money, so one more is refused (429) rather than one dropped.
/// Measured, an order that is authorized and captured takes 2.5 KiB with its keys, events and log: 500 MiB in all.
pub(super) const INTENTS_MAX: usize = 200_000;
/// Refunds kept; refused past it for the same reason.
pub(super) const REFUNDS_MAX: usize = 200_000;
/// Idempotency keys kept, the oldest dropped. The provider prunes them as well (after a day); an intent's own state
/// still refuses a second authorization. Create, confirm and capture of every intent fit.
pub(super) const KEYS_KEPT_MAX: usize = 3 * INTENTS_MAX;
/// Events kept for `/v1/events` and `/_sim/deliver`, the oldest dropped: the provider keeps a month of them.
pub(super) const EVENTS_KEPT_MAX: usize = 100_000;
/// Log entries kept, the oldest dropped: a test reads the log soon.
pub(super) const LOG_KEPT_MAX: usize = 200_000;
/// Scripted outcomes waiting, for each kind of operation.
pub(super) const SCRIPT_QUEUED_MAX: usize = 10_000;

/// Operations that outlive their connection (delayed, or delivering an early event). Past it nothing is delayed.
pub(super) const DETACHED_MAX: usize = 4_096;
/// The longest delay a script or a delivery mode may ask for: beyond every timeout a client would set.
pub(super) const DELAY_MS_MAX: u64 = 600_000;

/// Deliveries waiting for their turn or their time; one more is given up and stays available to `/_sim/deliver`.
pub(super) const DELIVERIES_QUEUED_MAX: usize = 50_000;
/// Deliveries running at once: 2,000/s at a receiver that takes 30 ms for each.
pub(super) const DELIVERIES_RUNNING_MAX: usize = 64;
/// How long a receiver may take for one delivery.
pub(super) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses before a refused delivery is tried again; after the last it is given up. Short, since a test waits for it.
pub(super) const DELIVERY_BACKOFF: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1_600)];
/// How much of a receiver's answer is read.
pub(super) const DELIVERY_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long mode `reverse` waits for a second event before it lets the first go alone.
pub(super) const REVERSE_HOLD: Duration = Duration::from_millis(50);

/// Objects in one page of a list, when not asked otherwise and at most; the provider's own figures.
pub(super) const LIST_LIMIT_DEFAULT: usize = 10;
/// See [`LIST_LIMIT_DEFAULT`].
pub(super) const LIST_LIMIT_MAX: usize = 100;

/// The provider's limits on metadata: entries, characters of a name, characters of a value.
pub(super) const METADATA_ENTRIES_MAX: usize = 50;
/// See [`METADATA_ENTRIES_MAX`].
pub(super) const METADATA_NAME_CHARS_MAX: usize = 40;
/// See [`METADATA_ENTRIES_MAX`].
pub(super) const METADATA_VALUE_CHARS_MAX: usize = 500;
/// The provider's largest amount: eight digits.
pub(super) const AMOUNT_MAX: i64 = 99_999_999;
/// The provider's longest idempotency key.
pub(super) const KEY_CHARS_MAX: usize = 255;

// Each connection can wait for one detached task, so waiting clients alone never use them up.
const _: () = assert!(DETACHED_MAX > CONNECTIONS_MAX);
