//! The only place that reads the time for decisions.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use onsale_core::time::Timestamp;
use onsale_store::Clock;

/// The clock of the server. In test mode it can be moved, forwards only.
pub(crate) struct ServerClock(Mode);

enum Mode {
    System,
    /// Stands still until it is told to move.
    Still(Mutex<Timestamp>),
    /// Runs, some milliseconds ahead of the system's.
    Ahead(Mutex<i64>),
}

/// A clock was asked to run backwards.
#[derive(Debug)]
pub(crate) struct Backwards;

impl ServerClock {
    pub(crate) fn system() -> ServerClock {
        ServerClock(Mode::System)
    }

    /// A clock that tests move. With workers running by themselves time must run too; without them it stands still, so
    /// that a test can stand exactly on a deadline.
    pub(crate) fn movable(runs: bool) -> ServerClock {
        match runs {
            true => ServerClock(Mode::Ahead(Mutex::new(0))),
            false => ServerClock(Mode::Still(Mutex::new(system_now()))),
        }
    }

    /// Moves the clock to an instant; `Err` when that is in its past or the clock can't be moved.
    pub(crate) fn set(&self, to: Timestamp) -> Result<(), Backwards> {
        match &self.0 {
            Mode::System => Err(Backwards),
            Mode::Still(now) => {
                let mut now = now.lock().expect("nothing panics under the clock's lock");
                if to < *now {
                    return Err(Backwards);
                }
                *now = to;
                Ok(())
            }
            Mode::Ahead(ahead) => {
                let mut ahead = ahead.lock().expect("nothing panics under the clock's lock");
                let needed = to.since_ms(system_now());
                if needed < *ahead {
                    return Err(Backwards);
                }
                *ahead = needed;
                Ok(())
            }
        }
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        match &self.0 {
            Mode::System => system_now(),
            Mode::Still(now) => *now.lock().expect("nothing panics under the clock's lock"),
            Mode::Ahead(ahead) => {
                system_now().plus_ms(*ahead.lock().expect("nothing panics under the clock's lock"))
            }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the one place")]
fn system_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since.as_millis().min(i64::MAX as u128) as i64)
}

/// Seconds since 1970 by the system's clock, for what the outside world has stamped.
pub(crate) fn wall_seconds() -> i64 {
    system_now().millis() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_still_clock_stands_on_the_instant_and_never_goes_back() {
        let clock = ServerClock::movable(false);
        let at = clock.now().plus_ms(10);
        clock.set(at).unwrap();
        assert_eq!((clock.now(), clock.now()), (at, at));
        assert!(clock.set(at.plus_ms(-1)).is_err());
        assert_eq!(clock.now(), at);
        assert!(ServerClock::system().set(at.plus_ms(1_000_000)).is_err());
    }
}
