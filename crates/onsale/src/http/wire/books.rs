//! Keys, cases and callbacks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::reconcile::Summary;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKeyJson {
    /// `operator`, `partner`, `gate` or `reader`.
    pub(crate) role: String,
    /// What you call it, up to 200 characters.
    pub(crate) name: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyJson {
    pub(crate) key_id: String,
    pub(crate) role: &'static str,
    pub(crate) name: String,
    /// Shown this once.
    pub(crate) secret: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CaseJson {
    pub(crate) case_id: String,
    pub(crate) event_id: Option<String>,
    pub(crate) kind: &'static str,
    pub(crate) order_id: Option<String>,
    pub(crate) operation_id: Option<String>,
    /// The provider's name of the payment in question, where it is none of ours.
    pub(crate) reference: Option<String>,
    pub(crate) opened_at: String,
    pub(crate) age_s: i64,
    pub(crate) evidence: String,
    /// `OPEN` or `CLOSED`.
    pub(crate) status: &'static str,
    pub(crate) owner: String,
    pub(crate) next_check_at: String,
    pub(crate) resolution: Option<ResolutionJson>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResolutionJson {
    pub(crate) action: String,
    pub(crate) note: String,
    pub(crate) actor: String,
    pub(crate) at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CasesJson {
    pub(crate) cases: Vec<CaseJson>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseActionJson {
    /// `void`, `refund`, `confirm_if_bound`, `release` or `dismiss`.
    pub(crate) action: String,
    /// Why; kept with the acting key.
    pub(crate) note: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRunJson {
    /// Payments made from here on, in RFC 3339; within the last 31 days. Without it, as far back as each comparison goes that is
    /// made by itself.
    pub(crate) since: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunJson {
    pub(crate) from: String,
    pub(crate) to: String,
    #[serde(flatten)]
    pub(crate) found: Summary,
    /// Whether something is left for a person.
    pub(crate) differences_remain: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReconciliationJson {
    /// Seconds between two comparisons; null when none are made by themselves.
    pub(crate) every_s: Option<i64>,
    pub(crate) overlap_s: i64,
    pub(crate) compared_to: Option<String>,
    pub(crate) next_due_at: Option<String>,
    pub(crate) under_way: bool,
    pub(crate) last_completed_at: Option<String>,
    pub(crate) last_found: Option<Summary>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallbackVerdictJson {
    /// `applied`, `duplicate`, `stale`, `conflict`, `already_paid_reconcile`, `refund_pending` or `parked`.
    pub(crate) outcome: &'static str,
}
