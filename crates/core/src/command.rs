//! What can be asked of the business, and the one function that answers.

use std::sync::Arc;

use crate::access::AccessCode;
use crate::best_available::Best;
use crate::event::{Event, EventStatus};
use crate::gateway::Observation;
use crate::hold::Hold;
use crate::id::{
    AccountId, AllocationNo, AreaNo, BucketNo, CaseId, EventNo, HoldId, OperationId, OrderId, SeatOrdinal,
    Seed, TicketId, TransferId,
};
use crate::idempotency::{KeyRecord, RequestKey, StoredAnswer};
use crate::manifest::Manifest;
use crate::reconcile::{About, Callback, CaseAction, CaseKind, Reconciled, Verdict};
use crate::refund::RefundPart;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::ticket::{Direction, Place, ScanResult};
use crate::time::Timestamp;

pub use crate::decide::observe::Effect;

/// A command with what makes it repeatable: its key and the ids it may give away.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is asked.
    pub command: Command,
    /// The caller's key, for commands that create business state.
    pub key: Option<RequestKey>,
    /// Where new ids come from; drawn for the command's event.
    pub seed: Seed,
}

/// What can be asked. Each command belongs to one event.
#[derive(Clone, Debug)]
pub enum Command {
    /// Makes an event; its row as it is to be, in DRAFT.
    CreateEvent(Box<Event>),
    /// Lays out the seats of an event that has never been opened.
    ReplaceManifest {
        /// Which event.
        event: EventNo,
        /// Its seats.
        manifest: Arc<Manifest>,
    },
    /// Sets prices for holds from now on. Levels not named keep the price they have.
    SetPrices {
        /// Which event.
        event: EventNo,
        /// The manifest the levels' indexes were read from.
        manifest_version: u32,
        /// Index of a level and its price in minor units.
        levels: Vec<(u16, i64)>,
    },
    /// Opens, halts or closes the sale.
    SetOnSale {
        /// Which event.
        event: EventNo,
        /// What it is to be; never DRAFT.
        status: EventStatus,
        /// Who says so.
        actor: String,
    },
    /// Keeps seats from sale, or puts them on sale; all or none.
    SetSeatsStatus {
        /// Which event.
        event: EventNo,
        /// The manifest the ordinals were read from.
        manifest_version: u32,
        /// Which seats.
        seats: Vec<SeatOrdinal>,
        /// Whether they are kept from sale.
        not_for_sale: bool,
        /// Who says so.
        actor: String,
    },
    /// Makes an allocation, for seats and places to be set aside for.
    MakeAllocation {
        /// Which event.
        event: EventNo,
        /// What it is called.
        name: String,
        /// Who says so.
        actor: String,
    },
    /// Sets seats aside for a party, or puts them on sale to all; all or none.
    SetSeatsAside {
        /// Which event.
        event: EventNo,
        /// The manifest the ordinals were read from.
        manifest_version: u32,
        /// Which seats.
        seats: Vec<SeatOrdinal>,
        /// For whom; `None` is everyone.
        allocation: Option<AllocationNo>,
        /// Who says so.
        actor: String,
    },
    /// Makes an access code, or changes it; what has been bought with it stays counted.
    SetAccessCode {
        /// Which event.
        event: EventNo,
        /// The code as it is to be.
        code: AccessCode,
        /// Who says so.
        actor: String,
    },
    /// Adds an empty bucket to a standing area.
    AddBucket {
        /// Which event.
        event: EventNo,
        /// Which area.
        area: AreaNo,
        /// For whom its places are; `None` is everyone.
        allocation: Option<AllocationNo>,
        /// Who says so.
        actor: String,
    },
    /// Lets more people into a standing area, or fewer.
    SetCapacity {
        /// Which event.
        event: EventNo,
        /// Which area.
        area: AreaNo,
        /// How many it takes from now on.
        capacity: u32,
        /// Who says so.
        actor: String,
    },
    /// Takes capacity out of a bucket, to go to another of the same area.
    BeginTransfer {
        /// Which event.
        event: EventNo,
        /// Which area.
        area: AreaNo,
        /// Out of which bucket.
        from: BucketNo,
        /// Into which.
        to: BucketNo,
        /// How many places.
        quantity: u32,
        /// Who says so.
        actor: String,
    },
    /// Lets a transfer arrive, or come back. One that has ended stays as it is.
    EndTransfer {
        /// Which.
        transfer: TransferId,
        /// Whether it arrives.
        arrives: bool,
    },
    /// Claims seats and places for an account; all or none.
    PlaceHold {
        /// Which event.
        event: EventNo,
        /// The manifest the ordinals were read from.
        manifest_version: u32,
        /// Who claims.
        account: AccountId,
        /// What is claimed.
        wish: Wish,
        /// The access code that is given with it, in its one form.
        code: Option<Arc<str>>,
    },
    /// Gives a hold back.
    ReleaseHold {
        /// Which hold.
        hold: HoldId,
        /// Whose it must be; `None` for an operator.
        account: Option<AccountId>,
    },
    /// Ends a hold whose time has come. Does nothing to any other.
    ExpireHold {
        /// Which hold.
        hold: HoldId,
    },
    /// Begins to pay for a hold.
    Checkout {
        /// Which hold.
        hold: HoldId,
        /// Whose it must be.
        account: AccountId,
        /// The card.
        payment_method_token: String,
        /// Where to write to.
        email: Option<String>,
        /// Where the buyer's browser goes after extra authentication.
        return_url: Option<String>,
    },
    /// Keeps the provider's name of an attempt's object, before anything is confirmed there.
    RecordReference {
        /// The attempt.
        operation: OperationId,
        /// The provider's name.
        reference: String,
    },
    /// Keeps the provider's answer to an operation, or that there was none.
    RecordAnswer {
        /// The operation that was sent or asked about.
        operation: OperationId,
        /// What came back.
        answer: Answer,
    },
    /// Judges a callback whose signature is good. A callback is a trigger: `observation` is what the provider says when
    /// asked about it, and `None` when it could not be asked.
    JudgeCallback {
        /// Where it belongs: the event of the attempt it is about, or the house.
        event: EventNo,
        /// The message; its verdict is yet to be set.
        callback: Box<Callback>,
        /// What was read back.
        observation: Option<Observation>,
        /// Whether it is of a kind that can move the books.
        relevant: bool,
    },
    /// Asks for money to be given back for a sold order.
    BeginRefund {
        /// Which order.
        order: OrderId,
        /// For which part of it.
        part: RefundPart,
        /// Whether the seats and places are for sale again once the money is back.
        resell: bool,
        /// Why.
        reason: String,
        /// Who: the acting key's id.
        actor: String,
    },
    /// Makes the tickets of an order that is paid for.
    IssueTickets {
        /// Which order.
        order: OrderId,
    },
    /// Makes the barcodes of a ticket worthless that are out there; there is a new one.
    ReissueTicket {
        /// Which ticket.
        ticket: TicketId,
        /// The generation whose barcodes are to be worthless.
        generation: u16,
        /// Who: the acting key's id.
        actor: String,
    },
    /// Shows a ticket at a gate.
    ScanTicket(Showing),
    /// Compares an attempt with what the provider said of it when it was asked for its books.
    Reconcile {
        /// The attempt.
        attempt: OperationId,
        /// What was read; `None` when the provider knows no such object.
        observation: Option<Observation>,
        /// When the attempt's operations had last moved before the provider was asked.
        as_of: Timestamp,
    },
    /// Keeps a question, unless it is kept already.
    OpenCase {
        /// What it is about.
        about: About,
        /// What kind of question.
        kind: CaseKind,
        /// What was seen.
        evidence: String,
    },
    /// Closes a question by proof.
    SettleCase {
        /// Which.
        case: CaseId,
        /// What has settled it.
        proof: String,
    },
    /// Acts on a case.
    ResolveCase {
        /// Which case.
        case: CaseId,
        /// What to do.
        action: CaseAction,
        /// Why.
        note: String,
        /// Who: the acting key's id.
        actor: String,
    },
}

/// A ticket as it is shown at a gate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Showing {
    /// The scanner's own id of it.
    pub scan: Arc<str>,
    /// The ticket that the barcode names; its signature has been verified.
    pub ticket: TicketId,
    /// The generation that the barcode names.
    pub generation: u16,
    /// The event that the gate lets people in to, if it says so.
    pub at: Option<EventNo>,
    /// Which way.
    pub direction: Direction,
    /// Where.
    pub gate: String,
    /// When, by the scanner's clock; now, unless it says so.
    pub scanned_at: Option<Timestamp>,
    /// Whether the scanner could not ask, and has let its holder in by itself.
    pub let_in_offline: bool,
}

/// What a hold is to claim.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wish {
    /// Which seats, ascending, each once.
    pub seats: Vec<SeatOrdinal>,
    /// How many places of which standing areas, each area once; never 0.
    pub ga: Vec<(AreaNo, u32)>,
    /// Seats to be chosen, in place of named ones.
    pub best: Option<Best>,
}

impl Wish {
    /// These seats and no places.
    pub fn of_seats(seats: Vec<SeatOrdinal>) -> Wish {
        Wish { seats, ..Wish::default() }
    }

    /// How many tickets it comes to.
    pub fn tickets(&self) -> u32 {
        let chosen = self.best.as_ref().map_or(0, |best| best.quantity);
        let places = self.ga.iter().map(|(_, quantity)| *quantity);
        places.fold((self.seats.len() as u32).saturating_add(chosen), u32::saturating_add)
    }
}

/// What came back from the provider.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// The object's state.
    Observed(Observation),
    /// A definite no, with the provider's code: this operation will never be done.
    Refused(String),
    /// Nothing: it may or may not have been done.
    NoAnswer,
    /// Not now: certainly not done; try again after so many milliseconds.
    Busy(i64),
}

impl Command {
    /// The event the command belongs to.
    pub fn event(&self) -> EventNo {
        match self {
            Command::CreateEvent(event) => event.no(),
            Command::ReplaceManifest { event, .. }
            | Command::SetPrices { event, .. }
            | Command::SetOnSale { event, .. }
            | Command::SetSeatsStatus { event, .. }
            | Command::MakeAllocation { event, .. }
            | Command::SetSeatsAside { event, .. }
            | Command::SetAccessCode { event, .. }
            | Command::AddBucket { event, .. }
            | Command::SetCapacity { event, .. }
            | Command::BeginTransfer { event, .. }
            | Command::PlaceHold { event, .. }
            | Command::JudgeCallback { event, .. } => *event,
            Command::ReleaseHold { hold, .. }
            | Command::ExpireHold { hold }
            | Command::Checkout { hold, .. } => hold.event(),
            Command::RecordReference { operation, .. } | Command::RecordAnswer { operation, .. } => {
                operation.event()
            }
            Command::EndTransfer { transfer, .. } => transfer.event(),
            Command::IssueTickets { order } => order.event(),
            Command::ReissueTicket { ticket, .. } => ticket.event(),
            Command::ScanTicket(showing) => showing.ticket.event(),
            Command::BeginRefund { order, .. } => order.event(),
            Command::ResolveCase { case, .. } | Command::SettleCase { case, .. } => case.event(),
            Command::Reconcile { attempt, .. } | Command::OpenCase { about: About::Attempt(attempt), .. } => {
                attempt.event()
            }
            Command::OpenCase { about: About::Object(event, _), .. } => *event,
        }
    }
}

/// What came of a command.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The event is made.
    EventCreated,
    /// The seats are laid out.
    ManifestReplaced {
        /// The manifest's version.
        version: u32,
    },
    /// The prices hold.
    PricesSet {
        /// Their version.
        price_version: u32,
    },
    /// The sale stands as asked.
    OnSaleSet,
    /// The seats stand as asked.
    SeatsStatusSet,
    /// The allocation is made.
    AllocationMade(AllocationNo),
    /// The seats are set aside, or on sale to all.
    SeatsSetAside,
    /// The code is as asked.
    AccessCodeSet,
    /// The bucket is there.
    BucketAdded(BucketNo),
    /// The area takes so many.
    CapacitySet,
    /// The capacity has left its bucket.
    TransferBegun(TransferId),
    /// The transfer has ended, now or before.
    TransferEnded,
    /// The seats and places are the account's.
    HoldPlaced(PlacedHold),
    /// The hold is over.
    HoldReleased,
    /// What became of a hold that was to expire.
    Expiry(Expiry),
    /// A payment has begun.
    CheckoutBegun(OrderId),
    /// The reference is kept: the attempt may be confirmed.
    MayConfirm,
    /// The attempt is over: it must not be confirmed.
    MustNotConfirm,
    /// The provider's answer is kept.
    Recorded {
        /// What it did to the books.
        effect: Effect,
        /// Whether the operation is still to be sent: the provider says that it wasn't done.
        send: bool,
    },
    /// The callback is judged.
    Judged(Verdict),
    /// The money is on its way back.
    RefundBegun(OperationId),
    /// The order has its tickets, now or before.
    TicketsIssued,
    /// The order's money isn't there by proof, or not any more.
    TicketsNotDue,
    /// The barcodes of that generation are worthless, now or before.
    TicketReissued,
    /// The gate has its answer.
    TicketScanned(Scanned),
    /// The attempt is compared.
    Reconciled(Reconciled),
    /// The question is kept.
    CaseKept {
        /// Which it is.
        case: CaseId,
        /// Whether it is new.
        opened: bool,
    },
    /// The question is closed, or was.
    CaseSettled,
    /// The case was acted upon.
    CaseActed,
    /// It was decided against.
    Refused(Refusal),
}

/// A hold as it was placed: what the buyer is told, now and whenever the request is repeated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedHold {
    /// The hold.
    pub hold: Hold,
    /// For each of its seats: ordinal, index of the price level, price in minor units.
    pub seats: Vec<(SeatOrdinal, u16, i64)>,
    /// For each area it has places in: the area, how many, index of the price level, price of each in minor units.
    pub ga: Vec<(AreaNo, u32, u16, i64)>,
}

/// What a gate is told of a ticket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scanned {
    /// What to do.
    pub result: ScanResult,
    /// What the ticket is for, if it is in the books.
    pub place: Option<Place>,
    /// When and where somebody was first let in with it: with ADMIT and ALREADY_USED.
    pub admitted: Option<(Timestamp, String)>,
}

/// What became of a hold that was to expire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expiry {
    /// Its time hasn't come, or it is over already.
    NotDue,
    /// Its seats are free.
    Expired,
    /// Its payment is in doubt: its seats stay bound until there is proof.
    InDoubt,
}

/// An outcome, and whether it is that of an earlier request with the same key.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// What came of it.
    pub outcome: Outcome,
    /// Whether it came of it before.
    pub replayed: bool,
}

/// Decides a command over the rows it needs; the rows move on. A refused command changes nothing but, when it was a
/// decision about the seats, the memory of its key.
pub fn decide(state: &mut Snapshot, request: &Request) -> Decision {
    let event = request.command.event();
    if let Some(key) = request.key
        && let Some(record) = state.keys.get(&(event, key.id))
    {
        if record.key.digest != key.digest {
            return Decision { outcome: Outcome::Refused(Refusal::KeyReused), replayed: false };
        }
        return Decision { outcome: recall(state, &record.answer), replayed: true };
    }
    let now = state.now_of(event);
    let outcome = crate::decide::decide(state, request, now);
    if let Some(key) = request.key
        && let Some(answer) = remember(&outcome)
    {
        state.keys.insert((event, key.id), KeyRecord { key, answer, created_at: now });
        state.touch_clock(event);
    }
    Decision { outcome, replayed: false }
}

fn remember(outcome: &Outcome) -> Option<StoredAnswer> {
    match outcome {
        Outcome::HoldPlaced(placed) => Some(StoredAnswer::HoldPlaced(placed.hold.id)),
        Outcome::CheckoutBegun(order) => Some(StoredAnswer::CheckoutBegun(*order)),
        Outcome::RefundBegun(operation) => Some(StoredAnswer::RefundBegun(*operation)),
        Outcome::TransferBegun(transfer) => Some(StoredAnswer::TransferBegun(*transfer)),
        Outcome::Refused(refusal) if refusal.is_kept() && !planted!(RefusalNotRemembered) => {
            Some(StoredAnswer::Refused(refusal.clone()))
        }
        _ => None,
    }
}

fn recall(state: &Snapshot, answer: &StoredAnswer) -> Outcome {
    match answer {
        StoredAnswer::HoldPlaced(hold) => crate::decide::hold::placed(state, *hold),
        StoredAnswer::CheckoutBegun(order) => Outcome::CheckoutBegun(*order),
        StoredAnswer::RefundBegun(operation) => Outcome::RefundBegun(*operation),
        StoredAnswer::TransferBegun(transfer) => Outcome::TransferBegun(*transfer),
        StoredAnswer::Refused(refusal) => Outcome::Refused(refusal.clone()),
    }
}
