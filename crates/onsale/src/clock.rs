//! The only place that reads the time for decisions.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use onsale_core::time::Timestamp;
use onsale_store::{CLOCKS_APART_MAX, Clock};

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

    /// A clock that tests move has a time of its own. One that runs ahead runs ahead of the database's, with which this
    /// machine's must agree all the same.
    fn agreed(&self, database: Timestamp) -> Option<Timestamp> {
        let apart = database.since_ms(system_now()).unsigned_abs();
        let agreed = (apart <= CLOCKS_APART_MAX.as_millis() as u64).then_some(database);
        match &self.0 {
            Mode::System => agreed,
            Mode::Still(_) => Some(self.now()),
            Mode::Ahead(ahead) => {
                agreed.map(|at| at.plus_ms(*ahead.lock().expect("nothing panics under the clock's lock")))
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

    #[test]
    fn the_databases_clock_counts_unless_it_is_wrong_or_a_test_has_its_own() {
        let (now, apart_ms) = (system_now(), CLOCKS_APART_MAX.as_millis() as i64);
        let (near, far) = (now.plus_ms(-1_000), now.plus_ms(-2 * apart_ms));
        let system = ServerClock::system();
        assert_eq!((system.agreed(near), system.agreed(far)), (Some(near), None));
        let still = ServerClock::movable(false);
        assert_eq!(still.agreed(far), Some(still.now()));
        let ahead = ServerClock::movable(true);
        ahead.set(system_now().plus_ms(3_600_000)).unwrap();
        let agreed = ahead.agreed(near).unwrap().since_ms(near);
        assert!((3_599_000..=3_600_000).contains(&agreed), "{agreed}");
        assert_eq!(ahead.agreed(far), None);
    }
}
