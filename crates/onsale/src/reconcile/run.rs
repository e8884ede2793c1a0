//! One comparison over a stretch of the provider's time: its payments, what it has given back, the entries of its account, our
//! payments that it didn't list, and the questions that are open from before.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use onsale_core::command::{Command, Outcome};
use onsale_core::comparison::{self, Comparison};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{CaseId, EventNo, OperationId, OrderId};
use onsale_core::reconcile::{About, CaseKind, CaseStatus, Reconciled};
use onsale_core::time::{Timestamp, seconds};
use onsale_store::{AttemptView, Reader, SettlementLine};

use crate::app::AppError;
use crate::gateway::stripe::{BalanceLine, GatewayError, Listed, Page, Stripe};

use super::{Installation, Summary};

/// Our payments read in one look.
const ATTEMPTS_TOGETHER: u32 = 500;
/// Tries at a payment that moves while it is looked at.
const TRIES_MAX: usize = 3;

/// Why a run has not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Provider(#[from] GatewayError),
    #[error(transparent)]
    Books(#[from] AppError),
    /// As long as one home can't be asked, nobody can say that a payment is nobody's.
    #[error("not all homes can be asked")]
    Partial,
    /// More than is read in one go; a shorter stretch has less.
    #[error("more than {0} pages of the provider's list")]
    TooMuch(usize),
}

/// A stretch of time by both clocks: seconds of the provider's, and ours.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub(crate) theirs: Range<i64>,
    pub(crate) ours: Range<Timestamp>,
}

impl Stretch {
    /// Seconds of the provider's clock. Ours may be ahead of it by so much, where a test has moved it.
    pub(crate) fn new(theirs: Range<i64>, ahead_ms: i64) -> Stretch {
        let at = |second: i64| Timestamp::from_millis(seconds(second));
        let ours = at(theirs.start)..at(theirs.end).plus_ms(ahead_ms.max(0));
        Stretch { theirs, ours }
    }
}

/// One comparison under way.
pub(crate) struct Run<'a, I> {
    pub(super) books: &'a I,
    provider: &'a Stripe,
    pages_left: usize,
    pages_max: usize,
    /// The provider's names of what has been looked at.
    seen: HashSet<String>,
    /// Attempts that have been decided, in whatever stretch.
    pub(super) decided: HashSet<OperationId>,
    /// Questions about what is in no book that have been found again.
    pub(super) asked: HashSet<CaseId>,
    pub(super) found: Summary,
}

impl<'a, I: Installation> Run<'a, I> {
    pub(crate) fn new(books: &'a I, provider: &'a Stripe, pages_max: usize) -> Run<'a, I> {
        let (seen, decided, asked) = (HashSet::new(), HashSet::new(), HashSet::new());
        let found = Summary::default();
        Run { books, provider, pages_left: pages_max, pages_max, seen, decided, asked, found }
    }

    /// Pages read in the last stretch.
    pub(crate) fn pages(&self) -> usize {
        self.pages_max - self.pages_left
    }

    /// Goes through a stretch of time.
    pub(crate) async fn through(&mut self, stretch: &Stretch) -> Result<Summary, RunError> {
        (self.pages_left, self.found) = (self.pages_max, Summary::default());
        self.seen.clear();
        let mut after = None;
        loop {
            self.page()?;
            let Page { found, next } = self.provider.list_payments(&stretch.theirs, after.as_deref()).await?;
            for listed in found {
                self.listed(listed).await?;
            }
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        // Money given back long after it was taken, also by hand, shows in a list of its own.
        let mut after = None;
        loop {
            self.page()?;
            let Page { found, next } = self.provider.list_refunds(&stretch.theirs, after.as_deref()).await?;
            for reference in found.into_iter().filter_map(|refund| refund.reference) {
                self.named(reference).await?;
            }
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let mut after = None;
        loop {
            self.page()?;
            let Page { found, next } = self.provider.list_balance(&stretch.theirs, after.as_deref()).await?;
            self.keep_lines(found).await?;
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        self.our_own(stretch).await?;
        Ok(std::mem::take(&mut self.found))
    }

    fn page(&mut self) -> Result<(), RunError> {
        self.pages_left = self.pages_left.checked_sub(1).ok_or(RunError::TooMuch(self.pages_max))?;
        Ok(())
    }

    /// A payment of the provider's list.
    async fn listed(&mut self, listed: Listed) -> Result<(), RunError> {
        if !self.seen.insert(listed.reference.clone()) {
            return Ok(());
        }
        self.found.looked_at += 1;
        match listed.seen {
            Ok(seen) => self.compare(&seen).await,
            Err(error) => {
                self.unreadable(&listed.reference, &error);
                Ok(())
            }
        }
    }

    fn unreadable(&mut self, reference: &str, error: &GatewayError) {
        self.found.unreadable += 1;
        tracing::error!(payment.reference = reference, error = %error, "A payment of the provider's can't be understood");
    }

    /// A payment that is to be asked about by its name.
    async fn named(&mut self, reference: String) -> Result<(), RunError> {
        if !self.seen.insert(reference.clone()) {
            return Ok(());
        }
        self.found.looked_at += 1;
        match self.ask(&reference).await? {
            Asked::Told(seen) => self.compare(&seen).await,
            Asked::Unreadable => Ok(()),
            Asked::Missing => match self.attempt_named(&reference).await? {
                Some(attempt) => self.decide(attempt, &reference).await.map(drop),
                None => {
                    self.found.strangers += 1;
                    Ok(())
                }
            },
        }
    }

    pub(super) async fn ask(&mut self, reference: &str) -> Result<Asked, RunError> {
        match self.provider.query(reference).await {
            Ok(seen) => Ok(Asked::Told(seen)),
            Err(GatewayError::Refused { status: 404, .. }) => Ok(Asked::Missing),
            Err(error @ GatewayError::Misconfigured(_)) => {
                self.unreadable(reference, &error);
                Ok(Asked::Unreadable)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Compares one payment as it was listed; what doesn't agree is decided.
    async fn compare(&mut self, seen: &Observation) -> Result<(), RunError> {
        let Some(attempt) = self.attempt_of(seen).await? else {
            return self.nobodys(seen).await;
        };
        let comparison = match self.books_of(attempt).await? {
            Some(view) => view.look(|books| comparison::compare(books, seen)),
            None => None,
        };
        if comparison == Some(Comparison::Agreed) {
            self.found.agreed += 1;
            return Ok(());
        }
        self.decide(attempt, &seen.reference).await?;
        Ok(())
    }

    pub(super) async fn books_of(&self, attempt: OperationId) -> Result<Option<AttemptView>, RunError> {
        Ok(self.books.read(attempt.event(), move |reader| reader.books_of(attempt)).await?)
    }

    /// Has a difference decided: the books are read, then the provider is asked, so that what the core is told is no older than
    /// what it is compared with. Whether they agree now.
    pub(super) async fn decide(&mut self, attempt: OperationId, reference: &str) -> Result<bool, RunError> {
        self.decided.insert(attempt);
        for _ in 0..TRIES_MAX {
            let Some(view) = self.books_of(attempt).await? else {
                break;
            };
            let observation = match self.ask(reference).await? {
                Asked::Told(seen) => Some(seen),
                Asked::Missing => None,
                Asked::Unreadable => return Ok(false),
            };
            let Some((as_of, differs)) = view.look(|books| {
                let differs = match &observation {
                    Some(seen) => match comparison::compare(books, seen) {
                        Comparison::Differs(kind, evidence) => Some((kind, evidence)),
                        Comparison::Agreed | Comparison::Behind => None,
                    },
                    None => {
                        comparison::missing(books).map(|evidence| (CaseKind::MissingAtProvider, evidence))
                    }
                };
                (books.moved_at(), differs)
            }) else {
                break;
            };
            if let Some((kind, evidence)) = differs {
                let is_dismissed = move |reader: &Reader<'_>| reader.is_dismissed(attempt, kind, &evidence);
                if self.books.read(attempt.event(), is_dismissed).await? {
                    self.found.dismissed += 1;
                    return Ok(false);
                }
            }
            let command = Command::Reconcile { attempt, observation, as_of };
            match self.books.record(command).await? {
                Outcome::Reconciled(Reconciled::Agreed) => {
                    self.found.agreed += 1;
                    return Ok(true);
                }
                Outcome::Reconciled(Reconciled::Moved) => {
                    self.found.behind += 1;
                    return Ok(true);
                }
                Outcome::Reconciled(Reconciled::Differs { opened, .. }) => {
                    self.found.differs += 1;
                    self.found.cases_opened += u64::from(opened);
                    return Ok(false);
                }
                Outcome::Reconciled(Reconciled::Overtaken) => {}
                // It left for another home, or a backup that is older was put in place.
                Outcome::Refused(_) => break,
                other => unreachable!("an attempt is compared or not found: {other:?}"),
            }
        }
        self.found.overtaken += 1;
        Ok(false)
    }

    /// The attempt an object is: by its name, or by what we attached to it when its name isn't kept yet.
    async fn attempt_of(&self, seen: &Observation) -> Result<Option<OperationId>, RunError> {
        if let Some(attempt) = self.attempt_named(&seen.reference).await? {
            return Ok(Some(attempt));
        }
        let Some(claimed) = seen.operation else {
            return Ok(None);
        };
        match self.books.read(claimed.event(), move |reader| reader.has_operation(claimed)).await {
            Ok(found) => Ok(found.then_some(claimed)),
            // What the object claims may be of an installation that has other events.
            Err(AppError::Homeless(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn attempt_named(&self, reference: &str) -> Result<Option<OperationId>, RunError> {
        let name = reference.to_owned();
        let found = self.books.read_all(move |reader| reader.attempt(&name)).await?;
        let attempt = found.iter().find_map(|(_, attempt)| *attempt);
        match attempt {
            None if found.len() < self.books.homes() => Err(RunError::Partial),
            attempt => Ok(attempt),
        }
    }

    /// An object that is no attempt of ours: with money it is a question.
    async fn nobodys(&mut self, seen: &Observation) -> Result<(), RunError> {
        let Some(money) = money_of(seen) else {
            self.found.strangers += 1;
            return Ok(());
        };
        let name = &seen.reference;
        let claims = match (seen.order, seen.operation) {
            (Some(order), _) => format!("it claims to be for {order}, which isn't in the books"),
            (None, Some(operation)) => format!("it claims to be {operation}, which isn't in the books"),
            (None, None) => "nothing on it says for whom".to_owned(),
        };
        let evidence = format!("{name} has {money} at the provider and is no payment of ours: {claims}");
        let about = About::Object(EventNo::HOUSE, name.clone());
        let command = Command::OpenCase { about, kind: CaseKind::OrphanPayment, evidence };
        match self.books.record(command).await? {
            Outcome::CaseKept { case, opened } => {
                self.asked.insert(case);
                let is_open = opened || self.is_open(case).await?;
                self.found.differs += u64::from(is_open);
                self.found.dismissed += u64::from(!is_open);
                self.found.cases_opened += u64::from(opened);
                Ok(())
            }
            other => unreachable!("the house keeps every question: {other:?}"),
        }
    }

    async fn is_open(&self, case: CaseId) -> Result<bool, RunError> {
        let read = self.books.read(case.event(), move |reader| reader.case(case)).await?;
        Ok(read.is_some_and(|case| case.status == CaseStatus::Open))
    }

    /// Our payments of this time that the provider did not list: it is asked about each.
    async fn our_own(&mut self, stretch: &Stretch) -> Result<(), RunError> {
        let (from, to) = (stretch.ours.start, stretch.ours.end);
        let mut after: Option<OperationId> = None;
        loop {
            let read = self
                .books
                .read_all(move |reader| reader.paid_attempts(from, to, after, ATTEMPTS_TOGETHER))
                .await?;
            // Each home goes on from the least that any has come to: what is seen twice is looked at once.
            let full = read.iter().filter(|(_, found)| found.len() == ATTEMPTS_TOGETHER as usize);
            let next = full.filter_map(|(_, found)| found.last()).map(|(id, _)| *id).min();
            for (_, reference) in read.into_iter().flat_map(|(_, found)| found) {
                self.named(reference).await?;
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Keeps the account's entries that are of our payments and aren't kept yet.
    async fn keep_lines(&mut self, lines: Vec<BalanceLine>) -> Result<(), RunError> {
        let mut new: BTreeMap<EventNo, Vec<SettlementLine>> = BTreeMap::new();
        for line in lines {
            let Some(reference) = &line.reference else {
                continue;
            };
            let Some(attempt) = self.attempt_named(reference).await? else {
                continue;
            };
            let id = line.id.clone();
            let read = self.books.read(attempt.event(), move |reader| {
                Ok((reader.has_settlement_line(&id)?, reader.books_of(attempt)?.map(|view| view.order.id)))
            });
            let (false, Some(order)) = read.await? else {
                continue;
            };
            new.entry(attempt.event()).or_default().push(kept(line, order, attempt));
        }
        for (event, lines) in new {
            self.found.settlement_lines += self.books.keep_lines(event, lines).await?;
        }
        Ok(())
    }
}

/// An entry as it is kept.
fn kept(line: BalanceLine, order: OrderId, attempt: OperationId) -> SettlementLine {
    let at = |second: i64| Timestamp::from_millis(seconds(second));
    SettlementLine {
        id: line.id,
        order,
        attempt,
        category: line.category,
        amount: line.amount,
        fee_minor: line.fee_minor,
        created_at: at(line.created_s),
        available_at: at(line.available_on_s),
    }
}

/// What the provider said when it was asked about one payment.
pub(super) enum Asked {
    Told(Observation),
    /// It knows no such payment.
    Missing,
    Unreadable,
}

/// The money that an object has, if it has any.
pub(super) fn money_of(seen: &Observation) -> Option<String> {
    match seen.state {
        IntentState::Authorized => Some(format!("{} set aside", seen.amount)),
        IntentState::Captured if seen.refunded_minor < seen.amount.amount_minor => {
            Some(format!("{} taken, {} of it given back", seen.amount, seen.refunded_minor))
        }
        IntentState::Captured
        | IntentState::Unconfirmed
        | IntentState::RequiresAction(_)
        | IntentState::Processing
        | IntentState::Declined(_)
        | IntentState::Voided => None,
    }
}
