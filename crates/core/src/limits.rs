//! Every maximum and every wait the rules know, each with its reason, checked against each other.

use crate::time::seconds;

/// Longest an event may let a hold live. An hour is already a seat nobody else can buy in the busiest hour.
pub const HOLD_TTL_MS_MAX: i64 = seconds(3_600);
/// Longest one grace. Extra authentication takes minutes, not hours.
pub const PAYMENT_GRACE_MS_MAX: i64 = seconds(1_800);
/// Most seats in a hold, whatever the event's policy: a hold's seats are read and written in one go.
pub const SEATS_PER_HOLD_MAX: u32 = 50;
/// Most tickets for an account, whatever the event's policy: an account's live holds are read for every decision.
pub const TICKETS_PER_ACCOUNT_MAX: u32 = 10_000;
/// Most people in one standing area: more than any place on earth has held, so that sums of areas fit everywhere.
pub const GA_CAPACITY_MAX: u32 = 10_000_000;
/// Most buckets of one standing area: all of them are read for each hold of it.
pub const BUCKETS_PER_AREA_MAX: u16 = 64;
/// Holds past their time that one decision ends to make room. The expirer ends the others a moment later.
pub const DUE_HOLDS_MAX: u32 = 100;
/// Most allocations of one event: a person names each of them.
pub const ALLOCATIONS_MAX: u16 = 1_000;
/// Attempts to pay one order. A card thief tries more; a buyer with a real card doesn't.
pub const ATTEMPTS_PER_ORDER_MAX: usize = 10;
/// With less time than this before the deadline no authorization is begun: it could not end in time.
pub const AUTHORIZE_WINDOW_MS_MIN: i64 = seconds(5);

/// How long one call to the provider may take before its answer counts as lost. Also how long an operation in
/// flight is left alone by other workers.
pub const PROVIDER_TIMEOUT_MS: i64 = seconds(20);
/// Providers may forget a key after 24 hours, and then the same key is a new payment: an hour before that we
/// stop sending and only ask.
pub const KEY_HORIZON_MS: i64 = seconds(23 * 3_600);
/// First wait before an operation without an answer is asked about.
pub const QUERY_BACKOFF_MS_MIN: i64 = seconds(1);
/// Longest such wait: an unknown payment is looked at at least this often until proof arrives.
pub const QUERY_BACKOFF_MS_MAX: i64 = seconds(300);
/// Questions without an answer after which a person is told (about four minutes).
pub const QUERIES_BEFORE_CASE: u32 = 8;
/// How often an attempt that waits for the buyer is looked at, should its callback be lost.
pub const ACTION_POLL_MS: i64 = seconds(20);
/// How long a callback nobody can place waits for its order before it becomes a case.
pub const PARKED_MS_MAX: i64 = seconds(600);
/// How often a parked callback is tried again.
pub const PARKED_RETRY_MS: i64 = seconds(10);

/// How long a finished request is remembered: two days, longer than any client retries a purchase.
pub const IDEMPOTENCY_TTL_MS: i64 = seconds(48 * 3_600);

/// Longest reason or note an operator leaves.
pub const NOTE_BYTES_MAX: usize = 2_000;

/// Whether a reason or a note says something and can be kept: not every database takes NUL, and a log has no use for its like.
pub fn is_note(text: &str) -> bool {
    let strange = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    !text.trim().is_empty() && text.len() <= NOTE_BYTES_MAX && !text.chars().any(strange)
}

/// Longest payment method token, e-mail address or return address kept.
pub const TEXT_BYTES_MAX: usize = 2_048;

const _: () =
    assert!(AUTHORIZE_WINDOW_MS_MIN < HOLD_TTL_MS_MAX, "an authorization must fit inside a fresh hold");
const _: () =
    assert!(KEY_HORIZON_MS < seconds(24 * 3_600), "keys are never used past the provider's own horizon");
const _: () = assert!(
    KEY_HORIZON_MS < IDEMPOTENCY_TTL_MS,
    "a repeated checkout is known for longer than its payment's key"
);
const _: () = assert!(QUERY_BACKOFF_MS_MIN < QUERY_BACKOFF_MS_MAX);
const _: () = assert!(PROVIDER_TIMEOUT_MS < QUERY_BACKOFF_MS_MAX);
