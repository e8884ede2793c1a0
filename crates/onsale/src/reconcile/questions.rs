//! The questions that are open from before: each run looks at them again, whenever they arose.

use onsale_core::command::{Command, Outcome};
use onsale_core::id::OperationId;
use onsale_core::reconcile::{About, Case, CaseKind};
use onsale_core::time::seconds;

use super::run::{Asked, Run, money_of};
use super::{Installation, RunError, Summary};

/// Open questions looked at again in one run, of each kind; the oldest come first.
const QUESTIONS_MAX: u32 = 1_000;
/// How long the issuer may take: it needs seconds, and whoever looks for his tickets writes after some minutes.
const TICKETS_WITHIN_MS: i64 = seconds(900);

impl<I: Installation> Run<'_, I> {
    /// Looks again at the questions that are open, whenever they arose: some have been answered at the provider.
    pub(crate) async fn questions(&mut self) -> Result<Summary, RunError> {
        for kind in [CaseKind::RefundMismatch, CaseKind::StateMismatch, CaseKind::MissingAtProvider] {
            for case in self.open(kind).await? {
                if let Some(attempt) = case.operation {
                    self.look_again(attempt).await?;
                }
            }
        }
        for case in self.open(CaseKind::OrphanPayment).await? {
            if let Some(subject) = case.subject.clone() {
                self.orphan(&case, &subject).await?;
            }
        }
        self.tickets().await?;
        Ok(std::mem::take(&mut self.found))
    }

    /// Our own books beside each other: who has paid has tickets, after some time.
    async fn tickets(&mut self) -> Result<(), RunError> {
        let before = self.books.now().plus_ms(-TICKETS_WITHIN_MS);
        let read = self.books.read_all(move |reader| reader.unticketed(before, QUESTIONS_MAX)).await?;
        for (attempt, order) in read.into_iter().flat_map(|(_, found)| found) {
            let evidence = format!("{order} was paid long ago, and has no tickets");
            let command = Command::OpenCase {
                about: About::Attempt(attempt),
                kind: CaseKind::TicketsMissing,
                evidence,
            };
            if let Outcome::CaseKept { opened, .. } = self.books.record(command).await? {
                self.found.differs += 1;
                self.found.cases_opened += u64::from(opened);
            }
        }
        for case in self.open(CaseKind::TicketsMissing).await? {
            let Some(order) = case.order else {
                continue;
            };
            if !self.books.read(order.event(), move |reader| reader.wants_tickets(order)).await? {
                let proof = "the tickets are there, or nobody waits for them any more".to_owned();
                self.books.record(Command::SettleCase { case: case.id, proof }).await?;
                self.found.cases_closed += 1;
            }
        }
        Ok(())
    }

    async fn open(&self, kind: CaseKind) -> Result<Vec<Case>, RunError> {
        let read = self.books.read_all(move |reader| reader.open_cases(kind, QUESTIONS_MAX)).await?;
        Ok(read.into_iter().flat_map(|(_, cases)| cases).collect())
    }

    async fn look_again(&mut self, attempt: OperationId) -> Result<(), RunError> {
        // What this run has decided already it needn't ask about again.
        if self.decided.contains(&attempt) {
            return Ok(());
        }
        let view = self.books_of(attempt).await?;
        let reference = view.and_then(|view| view.look(|books| books.attempt.reference.clone()).flatten());
        let Some(reference) = reference else {
            return Ok(());
        };
        self.found.looked_at += 1;
        if self.decide(attempt, &reference).await? {
            self.found.cases_closed += 1;
        }
        Ok(())
    }

    /// A payment that was nobody's: it may have found its order since, or its money may be gone.
    async fn orphan(&mut self, case: &Case, subject: &str) -> Result<(), RunError> {
        let proof = match self.attempt_named(subject).await? {
            Some(attempt) => Some(format!("the payment has found its order: it is {attempt}")),
            None => match self.ask(subject).await? {
                Asked::Told(seen) if money_of(&seen).is_none() => {
                    Some("the provider says that it has no money any more".to_owned())
                }
                Asked::Told(_) | Asked::Missing | Asked::Unreadable => None,
            },
        };
        if let Some(proof) = proof {
            self.books.record(Command::SettleCase { case: case.id, proof }).await?;
            self.found.cases_closed += 1;
        } else if !self.asked.contains(&case.id) {
            self.found.looked_at += 1;
            self.found.differs += 1;
        }
        Ok(())
    }
}
