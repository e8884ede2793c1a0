//! The questions that are open from before: each run looks at them again, whenever they arose.

use onsale_core::command::Command;
use onsale_core::id::OperationId;
use onsale_core::reconcile::{Case, CaseKind};

use super::run::{Asked, Run, money_of};
use super::{Installation, RunError, Summary};

/// Open questions looked at again in one run, of each kind; the oldest come first.
const QUESTIONS_MAX: u32 = 1_000;

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
        Ok(std::mem::take(&mut self.found))
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
