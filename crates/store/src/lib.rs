//! Makes decisions durable.
//!
//! A [`Store`] takes requests into a bounded queue, decides them in batches inside one transaction each, and answers
//! only after the commit. The rules are the core's; the SQL is all here. Reads never wait for writes.

mod audit;
mod boards;
mod erasure;
mod error;
#[doc(hidden)]
pub mod fail_point;
mod homes;
mod keys;
mod limits;
mod log_text;
mod look;
mod migrate;
mod moving;
mod names;
mod outbox;
mod postgres;
mod read;
mod rows;
mod settlement;
mod sqlite;
mod store;
mod upkeep;
mod writer;

pub use audit::{Audit, Check};
pub use erasure::{Erased, ErasedBy, Erasure};
pub use error::{InspectError, OpenError, StoreError, SubmitError, chain};
pub use homes::{Home, Homes};
pub use keys::{ApiKey, Role};
pub use limits::*;
pub use moving::{MoveError, Step, cancel_move, cancel_to_postgres, move_event, to_postgres};
pub use names::Named;
pub use outbox::{
    Attempt, Behind, DeliveryKey, DeliveryStatus, DeliveryView, DueDelivery, EndpointStatus, NewDelivery,
    Next, OpenDeliveries, WebhookEndpoint,
};
pub use postgres::{Duty, HomeOptions};
pub use read::{
    AttemptView, Attendee, AttendeeTicket, CallbackDue, CaseView, DirectoryLine, EventReport, GateConflict,
    HoldView, ManifestView, OperationView, OrderView, Reader, RefundView, RevokedTickets, Sales, SeatChanges,
    SeatDigits, Settled,
};
pub use settlement::SettlementLine;
pub use sqlite::{Ground, Options, audit_folder, backup_folder};
pub use store::{Store, WriterFigures, audit_url};
pub use writer::{Clock, Committed};
