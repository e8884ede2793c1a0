//! Bugs that can be planted, to prove that the simulated worlds (`crates/sim`) find such as these. They are compiled with
//! the feature `planted-bugs` alone, which no program has; without it, `planted!` is `false`.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The one that is planted in this process, by its place in [`Bug::ALL`] plus one; 0 for none.
static PLANTED: AtomicUsize = AtomicUsize::new(0);

macro_rules! bugs {
    ($($(#[doc = $what:literal])+ $name:ident;)*) => {
        /// A mistake somebody could make.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Bug {$($(#[doc = $what])+ $name,)*}

        impl Bug {
            /// All of them.
            pub const ALL: &[Bug] = &[$(Bug::$name,)*];

            /// What is wrong with it.
            pub fn what(self) -> &'static str {
                match self {$(Bug::$name => concat!($($what),+),)*}
            }
        }
    };
}

bugs! {
    // The core's.
    /// A hold is over one millisecond after its deadline, not at it.
    ExpiryAfterDeadline;
    /// A payment is sold on without asking whether its hold still binds the seats.
    HoldNotRechecked;
    /// A success sells the seats even after the order has ended.
    LateSuccessSells;
    /// Whoever takes an overdue seat over leaves the other hold as it was.
    TakeoverLeavesHold;
    /// Only successes are remembered for their key, refusals are decided anew.
    RefusalNotRemembered;
    /// Every checkout brings the grace, not the first alone.
    GraceTwice;
    /// The limit of an account counts what it bought, and not what its other devices hold.
    LimitForgetsHolds;
    /// An order costs what its seats cost now, not what was promised with the hold.
    PriceOfNow;
    /// A callback that has had its say is judged again.
    CallbackJudgedTwice;
    /// No answer is taken for a no.
    SilenceIsFailure;
    /// A success that can't have its seats opens a case, and the money stays where it is.
    SurplusKept;
    /// What is to be given back is known to the process that heard of it, and to nobody after a crash.
    ReturnOnlyInMemory;
    /// A second attempt may begin while the first is open.
    SecondAttemptWhileOpen;
    /// When the money can't be taken the order is cancelled, and its seats stay sold.
    CancelledKeepsSeats;
    /// A hold can be given back while it is being paid.
    ReleasedWhilePaid;
    /// The time of a decision is the process's own, though another has decided at a later one.
    ClockRunsBack;
    /// A declined payment still counts among the open ones.
    PendingNeverCountedDown;
    /// Whatever amount was authorized pays the order.
    AmountNotCompared;
    /// The end of the grace frees the seats though the payment is in doubt and the event keeps them.
    DoubtReleasesSeats;
    /// More places are held than an area has.
    AreaOversold;
    /// Places of a hold that is over count until somebody has swept it.
    OverduePlacesCounted;
    /// The cap over all standing areas is not asked.
    EventCapForgotten;
    /// Places that are sold stay counted as held.
    SoldPlacesStayHeld;
    /// Places of a hold that ends stay held.
    PlacesNotGivenBack;
    /// A transfer's capacity doesn't arrive.
    TransferLost;
    /// Seats set aside are held without their code.
    AllocationNotAsked;
    /// An access code can be used without end.
    CodeNotCounted;
    /// An access code gets nothing back when a hold ends.
    CodeNotGivenBack;
    /// A refund larger than what is left is sent.
    RefundNotBounded;
    /// A second refund is believed to be done because the first was.
    RefundBaseForgotten;
    /// Seats are free before the provider has given the money back.
    SeatsFreedBeforeRefund;
    /// A board doesn't take in what its own batch decides.
    BoardNotFollowed;
    /// Who has seats chosen doesn't get those of holds that are over.
    ChoiceForgetsDue;
    // The worker's.
    /// The object is confirmed before its name is kept.
    NameNotKept;
    /// What wasn't done is sent again however old its key is.
    SentPastHorizon;
    /// A capture, void or refund without an answer is given up.
    SilenceEndsReturn;
    /// Sending again makes a new key.
    NewKeyEachTime;
    // The store's.
    /// The end of a hold by the clock isn't logged.
    ExpiryNotLogged;
    /// Tickets sold aren't read for the account's limit.
    SoldNotRead;
    /// A row's new deadline isn't written with its other columns.
    DeadlineNotWritten;
    /// Places that are given back aren't written with their order.
    ReturnedPlacesNotWritten;
    /// A row is updated whatever it has become since it was read, outside the lock.
    ReadOutsideLock;
    /// The time is read before the lock is had.
    TimeBeforeLock;
    /// The key is kept in a transaction of its own, after the decision's.
    KeyKeptApart;
    /// The answer is sent before the commit.
    AnsweredBeforeCommit;
    /// A commit whose outcome is unknown is answered as not done.
    UnknownIsNotDone;
}

impl Bug {
    /// The bug of that name.
    pub fn named(name: &str) -> Option<Bug> {
        Bug::ALL.iter().copied().find(|bug| format!("{bug:?}") == name)
    }
}

/// Plants a bug in this process, in place of any other.
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as usize + 1), Ordering::SeqCst);
}

/// Whether this bug is planted.
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.load(Ordering::Relaxed) == bug as usize + 1
}
