//! What must happen now and then: a world in which nothing went wrong proves nothing.

use std::collections::BTreeMap;

macro_rules! sometimes {
    ($($(#[doc = $what:literal])+ $name:ident;)*) => {
        /// Something that some worlds of every run must meet.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Sometimes {$($(#[doc = $what])+ $name,)*}

        impl Sometimes {
            /// All of them.
            pub const ALL: &[Sometimes] = &[$(Sometimes::$name,)*];
        }
    };
}

sometimes! {
    /// A payment succeeded after its order had ended.
    LateSuccess;
    /// An operation without an answer turned out to be done.
    UnknownThenDone;
    /// A hold took seats of one that was overdue and not yet swept.
    Takeover;
    /// Something was decided at the very millisecond of a hold's deadline.
    AtTheDeadline;
    /// A commit failed, and the batch was there.
    UnknownCommitDone;
    /// A commit failed, and the batch wasn't there.
    UnknownCommitNotDone;
    /// A batch was undone.
    BatchUndone;
    /// A process ended between its commit and its answers.
    CrashAfterCommit;
    /// A process ended between sending a card and keeping the answer.
    CrashAfterConfirm;
    /// Several requests shared a transaction.
    Batch;
    /// A process decided while its clock was behind the event's.
    ClockBehind;
    /// A process's clock was set back.
    ClockSetBack;
    /// More than the keys' horizon passed at once.
    DayPassed;
    /// A worker took up a row that had moved on.
    StaleRow;
    /// The same key was answered again.
    Replayed;
    /// A call arrived at the provider after its caller had given up.
    LateCall;
    /// The provider knew a key already.
    KeyKnown;
    /// The provider could not be reached for a while.
    Outage;
    /// The provider refused a return or a capture.
    ReturnRefused;
    /// A callback moved the books before the answer did.
    CallbackFirst;
    /// A callback told what was known.
    CallbackAfter;
    /// A callback came again.
    CallbackTwice;
    /// A callback could not be placed at first.
    CallbackParked;
    /// A callback contradicted the books.
    CallbackConflict;
    /// A callback about a payment of somebody else became a case.
    Orphan;
    /// The provider authorized another amount.
    AmountMismatch;
    /// An attempt succeeded for an order that was paid.
    Surplus;
    /// The end of the grace found a payment in doubt.
    InDoubt;
    /// The provider was silent so long that a person was told.
    LongSilence;
    /// Seats were sold although the grace was over: the payment in doubt was proven.
    DoubtProven;
    /// A sale was undone.
    Compensated;
    /// An authorization lapsed.
    Lapsed;
    /// What the provider had called a failure was paid after all.
    FailureThenPaid;
    /// An operation became too old to be sent.
    TooOldToSend;
    /// A buyer acted and the payment went on.
    ActionDone;
    /// A second card paid.
    SecondCard;
    /// Prices changed while a hold was in hand.
    PriceChanged;
    /// The account's limit refused.
    LimitReached;
    /// Too many payments were open.
    Saturated;
    /// The sale was halted.
    Paused;
    /// A case was closed by releasing the seats.
    ReleasedByPerson;
    /// The operator's request was answered again under its key.
    OperatorReplayed;
    /// Seats and places were sold together.
    SoldMixed;
    /// Places of several buckets were sold to one order.
    SeveralBuckets;
    /// An area had too few places.
    AreaFull;
    /// The cap over all areas refused.
    EventFull;
    /// A hold took places, or tickets of a code, of one that was overdue and not yet swept.
    CountTakenOver;
    /// What was set aside was bought with its code.
    SetAsideSold;
    /// Seats set aside were asked for without their code.
    SetAsideRefused;
    /// Tickets were held before the sale began for all.
    Presale;
    /// An access code had too few tickets left.
    CodeExhausted;
    /// An access code was no longer good.
    CodeWithdrawn;
    /// Capacity arrived at another bucket.
    TransferArrived;
    /// Capacity came back to its bucket.
    TransferReturned;
    /// An area was made to take more people.
    CapacityRaised;
    /// An area was made to take fewer.
    CapacityLowered;
    /// An area could not be made to take fewer.
    CapacityInUse;
    /// All of an order was given back.
    RefundedWhole;
    /// A part of an order was given back.
    RefundedPart;
    /// Money was given back, and the buyer kept all tickets.
    RefundedMoneyAlone;
    /// An order was refunded more than once.
    RefundedAgain;
    /// A refund was asked for while another was on its way.
    RefundPending;
    /// A refund larger than what is left was asked for.
    RefundTooLarge;
    /// The provider refused a refund of what was sold, and the buyer kept it.
    RefundDenied;
    /// A callback told of a refund before the answer did.
    RefundByCallback;
    /// A seat that was given back was sold to somebody else.
    SoldAgain;
    /// Places that were given back are for nobody.
    KeptFromResale;
    /// Seats were chosen for a buyer.
    Chosen;
    /// There were none to choose.
    NoneToChoose;
    /// Tickets were made.
    TicketsIssued;
    /// Tickets stood still while their money was on its way back.
    TicketsSuspended;
    /// A ticket was issued anew.
    TicketReissued;
    /// Somebody was let in.
    Admitted;
    /// Somebody left.
    Left;
    /// A ticket was shown with which somebody had come in.
    TicketUsed;
    /// A ticket was shown whose money was back, or a barcode from before it was issued anew.
    TicketRevoked;
    /// A gate let somebody in by itself whom the books would not have let in.
    LetInOffline;
    /// The same scan was told again.
    ScanAgain;
    /// Seats were sold.
    Sold;
    /// Seats were sold by taking the money at once.
    SoldByCharge;
}

/// How often each has happened.
#[derive(Clone, Default, Debug)]
pub struct Coverage(BTreeMap<Sometimes, u64>);

impl Coverage {
    pub(crate) fn saw(&mut self, what: Sometimes) {
        *self.0.entry(what).or_default() += 1;
    }

    /// How often this has happened.
    pub fn count(&self, what: Sometimes) -> u64 {
        self.0.get(&what).copied().unwrap_or_default()
    }

    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Coverage) {
        for (what, count) in &other.0 {
            *self.0.entry(*what).or_default() += count;
        }
    }

    /// What has never happened.
    pub fn never(&self) -> Vec<Sometimes> {
        Sometimes::ALL.iter().copied().filter(|what| self.count(*what) == 0).collect()
    }
}
