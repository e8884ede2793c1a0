//! What comparisons find, in figures.

use serde::{Deserialize, Serialize};

/// What a run found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct Summary {
    /// Payments looked at, the provider's and ours.
    pub(crate) looked_at: u64,
    /// Of these, those of which both say the same, or a worker is about to make them.
    pub(crate) agreed: u64,
    /// Those of which the provider knew more: the books have taken it in.
    pub(crate) behind: u64,
    /// Those of which they differ: each is a case.
    pub(crate) differs: u64,
    /// Those that differ as somebody has already seen and dismissed.
    pub(crate) dismissed: u64,
    /// The provider's payments that are none of ours and have no money.
    pub(crate) strangers: u64,
    /// Those that moved while they were looked at; the next run looks again.
    pub(crate) overtaken: u64,
    /// The provider's objects that can't be understood; the log has them.
    pub(crate) unreadable: u64,
    /// Cases that are new.
    pub(crate) cases_opened: u64,
    /// Cases that were found settled.
    pub(crate) cases_closed: u64,
    /// Entries of the provider's account that are new.
    pub(crate) settlement_lines: u64,
}

impl Summary {
    /// Whether nothing is left for a person.
    pub(crate) fn is_clean(&self) -> bool {
        self.differs == 0 && self.unreadable == 0
    }

    /// Adds what another stretch has brought.
    pub(crate) fn add(&mut self, other: &Summary) {
        for (sum, figure) in [
            (&mut self.looked_at, other.looked_at),
            (&mut self.agreed, other.agreed),
            (&mut self.behind, other.behind),
            (&mut self.differs, other.differs),
            (&mut self.dismissed, other.dismissed),
            (&mut self.strangers, other.strangers),
            (&mut self.overtaken, other.overtaken),
            (&mut self.unreadable, other.unreadable),
            (&mut self.cases_opened, other.cases_opened),
            (&mut self.cases_closed, other.cases_closed),
            (&mut self.settlement_lines, other.settlement_lines),
        ] {
            *sum += figure;
        }
    }
}
