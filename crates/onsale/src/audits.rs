//! The audits of several homes as one.

use std::sync::Arc;

use onsale_store::Audit;
use serde_json::{Value, json};

/// Each check with what it found anywhere; rows say at which home. What one home alone has is told as it is.
pub(crate) fn together(audits: Vec<(Arc<str>, Audit)>) -> Audit {
    let several = audits.len() > 1;
    let mut whole = Audit { checks: Vec::new() };
    for (home, audit) in audits {
        for mut check in audit.checks {
            if several {
                check.rows.iter_mut().for_each(|row| *row = format!("{home}: {row}"));
            }
            match whole.checks.iter_mut().find(|known| known.id == check.id) {
                Some(known) => {
                    known.violations += check.violations;
                    known.rows.extend(check.rows);
                }
                None => whole.checks.push(check),
            }
        }
    }
    whole
}

/// An audit as JSON.
pub(crate) fn to_json(audit: &Audit) -> Value {
    let checks: Vec<_> = audit
        .checks
        .iter()
        .map(|check| {
            json!({ "id": check.id, "title": check.title, "violations": check.violations, "rows": check.rows })
        })
        .collect();
    json!({ "checks": checks, "violations": audit.violations() })
}
