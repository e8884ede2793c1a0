//! When book is compared with book, and how far that has come. The provider's books span all homes, so this is kept once, in the
//! main one: whoever has its duty goes on from there.
//!
//! Each round goes from some time before the last one's end to now, so that what the provider lists late is seen; in stretches,
//! some in each pass, so that nothing else waits for long and a process that ends loses no more than one of them.

use std::sync::Arc;

use onsale_core::time::seconds;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::clock::wall_seconds;
use crate::config::ReconcileSettings;
use crate::desk::HomeNo;
use crate::gateway::stripe::Stripe;

use super::run::{Run, Stretch};
use super::{Installation, RunError, Summary};

/// The name under which it is kept.
const NAME: &str = "reconciliation";
/// Pages of the provider's list read in one stretch: two hundred thousand payments.
const PAGES_MAX: usize = 2_000;
/// Pages after which a pass leaves the rest of the round to the next one.
const PAGES_IN_A_PASS: usize = 200;
/// A stretch of the provider's time, at first and at most; and at least, before it is given up.
const STRETCH_S: i64 = 900;
const STRETCH_S_MAX: i64 = 6 * 3_600;
const STRETCH_S_MIN: i64 = 1;
/// How short stretches become when the provider does not answer all the way through one.
const STRETCH_S_FAILED_MIN: i64 = 60;

/// How often, and how far back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Between two rounds; `None` when there are none.
    pub(crate) every_s: Option<i64>,
    /// How far each goes back behind the end of the last.
    pub(crate) overlap_s: i64,
}

impl Plan {
    pub(crate) fn of(settings: &ReconcileSettings) -> Plan {
        let ReconcileSettings { every_s, overlap_s } = *settings;
        Plan { every_s: Some(every_s).filter(|every_s| *every_s > 0), overlap_s }
    }
}

/// How far it has come.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Up to when everything has been compared, in seconds of the provider's time.
    pub(crate) compared_to_s: i64,
    /// When the next round is due, in milliseconds of ours.
    pub(crate) due_ms: i64,
    /// The round under way.
    pub(crate) round: Option<Round>,
    /// The last that came to its end.
    pub(crate) last: Option<Last>,
}

/// A round under way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Where the next stretch begins.
    next_s: i64,
    /// Where the round ends.
    to_s: i64,
    /// How long the next stretch is.
    #[serde(default = "stretch_s")]
    stretch_s: i64,
    /// What it has found so far.
    found: Summary,
}

fn stretch_s() -> i64 {
    STRETCH_S
}

/// A round that came to its end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Last {
    /// When, in milliseconds of ours.
    pub(crate) at_ms: i64,
    /// What it found.
    pub(crate) found: Summary,
}

/// How far it has come, and the text under which that is kept. What another version has kept, and this one can't read, is begun
/// anew.
pub(crate) async fn progress(app: &Arc<App>) -> Result<(Option<String>, Option<Progress>), RunError> {
    let kept = app.read_at(HomeNo::MAIN, |reader| reader.progress(NAME)).await?;
    let progress = kept.as_ref().and_then(|(text, _)| serde_json::from_str(text).ok());
    Ok((kept.map(|(text, _)| text), progress))
}

/// One pass: begins a round that is due, or takes one some stretches further.
pub(crate) async fn pass(app: &Arc<App>) -> Result<(), RunError> {
    let (Some(gateways), Some(every_s)) = (&app.gateway, app.reconcile.every_s) else {
        return Ok(());
    };
    let now_ms = app.now().millis();
    let (was, progress) = progress(app).await?;
    let Some(progress) = progress else {
        // The first round is due when this installation has run for as long as lies between two.
        let due_ms = now_ms.saturating_add(seconds(every_s));
        let first = Progress { compared_to_s: provider_now_s(), due_ms, round: None, last: None };
        keep(app, was, &first).await?;
        return Ok(());
    };
    let round = match progress.round.clone() {
        Some(round) => round,
        None if progress.due_ms > now_ms => return Ok(()),
        None => Round {
            next_s: progress.compared_to_s - app.reconcile.overlap_s,
            to_s: provider_now_s(),
            stretch_s: STRETCH_S,
            found: Summary::default(),
        },
    };
    let (round, ended) = go_on(app, &gateways.for_workers, round, PAGES_IN_A_PASS).await;
    let next = match round.next_s < round.to_s {
        true => Progress { round: Some(round), ..progress },
        false => {
            let found = round.found;
            app.metrics.reconciled(&found);
            tracing::info!(?found, "The provider's books have been compared with these");
            Progress {
                compared_to_s: round.to_s,
                due_ms: now_ms.saturating_add(seconds(every_s)),
                round: None,
                last: Some(Last { at_ms: now_ms, found }),
            }
        }
    };
    // Another process may have done the same meanwhile: its word stands, and nothing is lost.
    keep(app, was, &next).await?;
    ended
}

async fn keep(app: &Arc<App>, was: Option<String>, progress: &Progress) -> Result<bool, RunError> {
    let text = serde_json::to_string(progress).expect("numbers are JSON");
    let store = app.store(HomeNo::MAIN);
    Ok(store.keep_progress(NAME, was, text, app.now()).await.map_err(crate::app::AppError::from)?)
}

/// Takes a round further by about so many pages, or until something is in the way; when it comes to its end, the open questions
/// are looked at as well.
async fn go_on<I: Installation>(
    books: &I,
    provider: &Stripe,
    mut round: Round,
    pages: usize,
) -> (Round, Result<(), RunError>) {
    let mut read = 0;
    let mut run = Run::new(books, provider, PAGES_MAX);
    let ahead_ms = books.now().millis() - seconds(wall_seconds());
    while round.next_s < round.to_s && read < pages {
        let end = round.to_s.min(round.next_s + round.stretch_s);
        let mut found = match run.through(&Stretch::new(round.next_s..end, ahead_ms)).await {
            Ok(found) => found,
            Err(RunError::TooMuch(_)) if round.stretch_s > STRETCH_S_MIN => {
                round.stretch_s = (round.stretch_s / 2).max(STRETCH_S_MIN);
                continue;
            }
            Err(error) => {
                // One call in so many may fail for ever: what is shorter comes to its end.
                let shorter = (round.stretch_s / 2).max(STRETCH_S_FAILED_MIN);
                round.stretch_s = round.stretch_s.min(shorter);
                return (round, Err(error));
            }
        };
        if end >= round.to_s {
            match run.questions().await {
                Ok(answered) => found.add(&answered),
                Err(error) => return (round, Err(error)),
            }
        }
        // Three pages are three empty lists: nights are passed over quickly.
        if run.pages() <= 3 {
            round.stretch_s = (round.stretch_s * 2).min(STRETCH_S_MAX);
        }
        read += run.pages();
        round.found.add(&found);
        round.next_s = end;
    }
    (round, Ok(()))
}

/// The first second that is yet to come by the provider's clock: what is made in this one has a place before it.
pub(crate) fn provider_now_s() -> i64 {
    wall_seconds() + 1
}

/// One comparison from some second of the provider's time to another, from beginning to end.
pub(crate) async fn now<I: Installation>(
    books: &I,
    provider: &Stripe,
    from_s: i64,
    to_s: i64,
) -> Result<Summary, RunError> {
    let next_s = from_s.min(to_s - 1);
    let round = Round { next_s, to_s, stretch_s: STRETCH_S, found: Summary::default() };
    let (round, ended) = go_on(books, provider, round, usize::MAX).await;
    ended.map(|()| round.found)
}
