//! Leaving an endpoint alone for a while: one that asks for it, or that has answered nothing of late. Otherwise every message
//! that there is for it would be tried in vain. It is for the sake of both sides and kept in memory: no message is lost by it,
//! and none has one try less.

use std::collections::HashMap;
use std::sync::Mutex;

use onsale_core::id::EndpointId;
use onsale_core::time::{Timestamp, seconds};

use crate::desk::HomeNo;

use super::{hours, minutes};

/// Failures in a row after which an endpoint is taken to be away.
const FAILURES_MAX: u32 = 8;
/// The first pause, which doubles up to the longest.
const PAUSE_MS: i64 = seconds(5);
const PAUSE_MS_MAX: i64 = minutes(5);
/// How long one is left alone that asks for it; its message waits as long as it was told.
const ASKED_MS_MAX: i64 = hours(1);

#[derive(Clone, Copy)]
struct Pause {
    failures: u32,
    until: Timestamp,
}

/// The pauses of all endpoints, at each home: the messages of each are carried by themselves.
#[derive(Default)]
pub(crate) struct Pauses(Mutex<HashMap<(HomeNo, EndpointId), Pause>>);

impl Pauses {
    /// Whether an endpoint is to be left alone.
    pub(crate) fn holds(&self, home: HomeNo, endpoint: EndpointId, now: Timestamp) -> bool {
        let pauses = self.0.lock().expect("nothing panics under the lock");
        pauses.get(&(home, endpoint)).is_some_and(|pause| now < pause.until)
    }

    /// A message has arrived, or the endpoint was enabled anew.
    pub(crate) fn end(&self, home: HomeNo, endpoint: EndpointId) {
        self.0.lock().expect("nothing panics under the lock").remove(&(home, endpoint));
    }

    /// A message has not arrived. `asked_ms` is for how long the endpoint wants to be left alone.
    pub(crate) fn failed(&self, home: HomeNo, endpoint: EndpointId, now: Timestamp, asked_ms: Option<i64>) {
        let mut pauses = self.0.lock().expect("nothing panics under the lock");
        let pause = pauses.entry((home, endpoint)).or_insert(Pause { failures: 0, until: Timestamp::ZERO });
        pause.failures += 1;
        let doubled = pause.failures.saturating_sub(FAILURES_MAX).min(16);
        let own_ms = if pause.failures < FAILURES_MAX { 0 } else { (PAUSE_MS << doubled).min(PAUSE_MS_MAX) };
        let asked_ms = asked_ms.map_or(0, |asked| asked.clamp(PAUSE_MS, ASKED_MS_MAX));
        pause.until = pause.until.max(now.plus_ms(own_ms.max(asked_ms)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: EndpointId = EndpointId(1);
    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    #[test]
    fn one_that_answers_nothing_is_left_alone_for_longer_and_longer() {
        let pauses = Pauses::default();
        for _ in 1..FAILURES_MAX {
            pauses.failed(HomeNo::MAIN, ONE, NOW, None);
            assert!(!pauses.holds(HomeNo::MAIN, ONE, NOW));
        }
        let mut now = NOW;
        for wanted_s in [5, 10, 20, 40, 80, 160, 300, 300] {
            pauses.failed(HomeNo::MAIN, ONE, now, None);
            assert!(pauses.holds(HomeNo::MAIN, ONE, now.plus_ms(seconds(wanted_s) - 1)));
            now = now.plus_ms(seconds(wanted_s));
            assert!(!pauses.holds(HomeNo::MAIN, ONE, now), "{wanted_s}");
        }
        assert!(!pauses.holds(HomeNo(1), ONE, NOW), "another home carries its own");
        pauses.end(HomeNo::MAIN, ONE);
        pauses.failed(HomeNo::MAIN, ONE, now, None);
        assert!(!pauses.holds(HomeNo::MAIN, ONE, now));
    }

    #[test]
    fn one_that_asks_for_it_is_left_alone_at_once_within_bounds() {
        for (asked_ms, wanted_ms) in [(0, PAUSE_MS), (60_000, 60_000), (hours(9), ASKED_MS_MAX)] {
            let pauses = Pauses::default();
            pauses.failed(HomeNo::MAIN, ONE, NOW, Some(asked_ms));
            assert!(pauses.holds(HomeNo::MAIN, ONE, NOW.plus_ms(wanted_ms - 1)));
            assert!(!pauses.holds(HomeNo::MAIN, ONE, NOW.plus_ms(wanted_ms)));
        }
    }
}
