//! Writing cases and callbacks.

use onsale_core::reconcile::{Callback, Case};
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::names::Named;

use super::one;

pub(super) fn case(db: &Connection, before: Option<&Case>, after: &Case) -> Result<(), StoreError> {
    let resolution = after.resolution.as_ref();
    let acted = (
        resolution.map(|r| r.action.as_str()),
        resolution.map(|r| r.note.as_str()),
        resolution.map(|r| r.actor.as_str()),
        resolution.map(|r| r.at.millis()),
    );
    let Some(before) = before else {
        let mut statement = db.prepare_cached(
            "INSERT INTO cases (case_id, event_no, kind, order_id, operation_id, opened_at, evidence, status, owner,
               next_check_at, action, note, actor, acted_at, subject)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?;
        let count = statement.execute(params![
            after.id.0.to_be_bytes(),
            after.event().0,
            after.kind.as_str(),
            after.order.map(|order| order.0.to_be_bytes()),
            after.operation.map(|operation| operation.0.to_be_bytes()),
            after.opened_at.millis(),
            after.evidence,
            after.status.word(),
            after.owner,
            after.next_check_at.millis(),
            acted.0,
            acted.1,
            acted.2,
            acted.3,
            after.subject,
        ])?;
        return one("cases", count);
    };
    let mut statement = db.prepare_cached(
        "UPDATE cases SET status = ?1, owner = ?2, next_check_at = ?3, action = ?4, note = ?5, actor = ?6, acted_at = ?7
         WHERE case_id = ?8 AND status = ?9 AND owner = ?10",
    )?;
    let count = statement.execute(params![
        after.status.word(),
        after.owner,
        after.next_check_at.millis(),
        acted.0,
        acted.1,
        acted.2,
        acted.3,
        after.id.0.to_be_bytes(),
        before.status.word(),
        before.owner,
    ])?;
    one("cases", count)
}

pub(super) fn callback(
    db: &Connection,
    before: Option<&Callback>,
    after: &Callback,
) -> Result<(), StoreError> {
    let claimed = after.claimed_order.map(|order| order.0.to_be_bytes());
    let case = after.case.map(|case| case.0.to_be_bytes());
    let Some(before) = before else {
        let mut statement = db.prepare_cached(
            "INSERT INTO callbacks (provider_event_id, event_no, digest, kind, reference, claimed_order, verdict, received_at,
               due_at, case_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        let count = statement.execute(params![
            after.provider_event_id,
            after.event.0,
            after.digest.to_be_bytes(),
            after.kind,
            after.reference,
            claimed,
            after.verdict.word(),
            after.received_at.millis(),
            after.due_at.millis(),
            case,
        ])?;
        return one("callbacks", count);
    };
    let mut statement = db.prepare_cached(
        "UPDATE callbacks SET verdict = ?1, due_at = ?2, case_id = ?3, event_no = ?4
         WHERE provider_event_id = ?5 AND verdict = ?6 AND due_at = ?7",
    )?;
    let count = statement.execute(params![
        after.verdict.word(),
        after.due_at.millis(),
        case,
        after.event.0,
        after.provider_event_id,
        before.verdict.word(),
        before.due_at.millis(),
    ])?;
    one("callbacks", count)
}
