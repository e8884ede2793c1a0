//! What this process keeps beside each home: how many may look there at once, when it last answered, and whether its duty is
//! here. So that a home that is away keeps nobody waiting who wants something of another.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use onsale_store::{HOME_READERS_MAX, Store};
use tokio::sync::Semaphore;

/// Heavy reads (manifests, reports, audits) at once; each keeps a core busy.
pub(crate) const HEAVY_READS_MAX: usize = 4;
/// Looks at once that wait for a server. As many as there are connections to look through: one more would only hold a thread
/// that waits for one of them.
const LOOKS_MAX: usize = HOME_READERS_MAX;
/// A home that hasn't answered for this long is taken to be away, though nobody has said so: a server that is cut off says
/// nothing. It is asked ten times a second, so that this is far more than a busy moment of either machine.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// A home by its place in the settings; the main one is the first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct HomeNo(pub(crate) usize);

impl HomeNo {
    pub(crate) const MAIN: HomeNo = HomeNo(0);
}

/// What is kept beside one home.
pub(crate) struct Desk {
    pub(crate) looks: Semaphore,
    pub(crate) heavy: Semaphore,
    /// When it last answered; `None` where there is nobody to wait for.
    heard_at: Option<Mutex<Instant>>,
    on_duty: AtomicBool,
}

impl Desk {
    pub(crate) fn new(store: &Store) -> Desk {
        let waits = store.looks_block();
        Desk {
            looks: Semaphore::new(LOOKS_MAX),
            heavy: Semaphore::new(HEAVY_READS_MAX),
            heard_at: waits.then(|| Mutex::new(Instant::now())),
            on_duty: AtomicBool::new(!waits),
        }
    }

    /// The home has answered.
    pub(crate) fn heard(&self) {
        if let Some(at) = &self.heard_at {
            *at.lock().expect("nothing panics under the lock") = Instant::now();
        }
    }

    /// Whether it hasn't answered for too long. Whoever wants something of it is then told so at once.
    pub(crate) fn is_silent(&self) -> bool {
        let silent =
            |at: &Mutex<Instant>| at.lock().expect("nothing panics under the lock").elapsed() >= SILENCE_MAX;
        self.heard_at.as_ref().is_some_and(silent)
    }

    /// Whether this process is to do what only one needs to do for this home.
    pub(crate) fn is_on_duty(&self) -> bool {
        self.on_duty.load(Ordering::Relaxed)
    }

    pub(crate) fn set_on_duty(&self, on_duty: bool) {
        self.on_duty.store(on_duty, Ordering::Relaxed);
    }
}
