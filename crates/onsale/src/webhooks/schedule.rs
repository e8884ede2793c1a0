//! When a message is tried again.

use onsale_core::time::{Timestamp, seconds};

use super::{hours, minutes};

/// How long is waited after each try that failed; the first try is made at once. After the last of these there is one more try.
const PAUSES_MS: [i64; 9] =
    [seconds(5), minutes(5), minutes(30), hours(2), hours(5), hours(10), hours(14), hours(20), hours(24)];
/// A receiver may ask for a longer pause, but not for one that would outlast everybody's attention.
pub(super) const RETRY_AFTER_MS_MAX: i64 = hours(24);

/// When a message is tried again whose tries have all failed, so many of them; `None` when it has been tried as often as it is
/// to be. A tenth of the pause is left to chance, so that what failed together doesn't come back together; it is taken away
/// and not added, so that nobody waits longer than the documents say.
pub(crate) fn next_try(
    now: Timestamp,
    failed: u32,
    retry_after_ms: Option<i64>,
    chance: f64,
) -> Option<Timestamp> {
    let pause_ms = *PAUSES_MS.get(failed.checked_sub(1)? as usize)?;
    let shorter_ms = (pause_ms as f64 / 10.0 * chance.clamp(0.0, 1.0)) as i64;
    let asked_ms = retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MS_MAX);
    Some(now.plus_ms((pause_ms - shorter_ms).max(asked_ms)))
}

/// The header `Retry-After` in milliseconds: seconds, or a date, of which `now_s` is the time by the same calendar.
pub(crate) fn retry_after_ms(value: &str, now_s: i64) -> Option<i64> {
    let value = value.trim();
    let seconds_left = match value.parse::<u32>() {
        Ok(seconds) => i64::from(seconds),
        Err(_) => jiff::fmt::rfc2822::parse(value).ok()?.timestamp().as_second() - now_s,
    };
    Some((seconds_left.max(0) * 1_000).min(RETRY_AFTER_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    #[test]
    fn ten_tries_with_growing_pauses_and_then_no_more() {
        let pauses = |chance| {
            let next = |failed| next_try(NOW, failed, None, chance).map(|at| at.since_ms(NOW) / 1_000);
            (1..=11).map_while(next).collect::<Vec<_>>()
        };
        assert_eq!(pauses(0.0), [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
        assert_eq!(pauses(1.0), [4, 270, 1_620, 6_480, 16_200, 32_400, 45_360, 64_800, 77_760]);
        assert_eq!(pauses(7.0), pauses(1.0));
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_but_not_for_less_nor_for_ever() {
        let next = |asked| next_try(NOW, 1, Some(asked), 0.0).unwrap().since_ms(NOW);
        assert_eq!((next(1_000), next(60_000), next(i64::MAX)), (5_000, 60_000, RETRY_AFTER_MS_MAX));
        for (value, wanted) in [
            ("120", Some(120_000)),
            (" 0 ", Some(0)),
            ("99999999", Some(RETRY_AFTER_MS_MAX)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(37_000)),
            ("Sat, 05 Nov 1994 08:49:37 GMT", Some(0)),
            ("-5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_after_ms(value, 784_111_740), wanted, "{value:?}");
        }
    }
}
