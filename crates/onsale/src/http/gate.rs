//! The gate: tickets that are shown there, what scanners did that could not ask, and what they need to know for that.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use onsale_core::command::{Command, Outcome, Scanned, Showing};
use onsale_core::id::{EventId, EventNo};
use onsale_core::refusal::Refusal;
use onsale_core::ticket::{Direction, ScanResult};
use onsale_core::time::{Timestamp, seconds};
use onsale_store::{GateConflict, Named, Store};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

use super::caller::{Gate, GateReader, PathId};
use super::extract::{ApiJson, ApiQuery};
use super::problem::{FieldError, Problem};
use super::reasons::{not_found, not_one_of, refused};
use super::tickets::{place_json, place_or_none};
use super::wire::gate::{
    ConflictJson, ConflictsJson, NewScanJson, OfflineScanJson, PlaceJson, RevokedJson, RevokedTicketJson,
    ScanJson, TicketKeyJson, TicketKeysJson, UploadJson, UploadedJson, UploadedScanJson,
};
use super::wire::{parse_time, rfc3339};

/// Scans in one upload: as many as fit into a body with room to spare.
const UPLOAD_MAX: usize = 100;
/// How far a scanner's clock may be ahead of ours.
const AHEAD_MS_MAX: i64 = seconds(600);
/// Longest id of a scan.
const SCAN_ID_BYTES_MAX: usize = 128;
/// Longest name of a gate.
const GATE_CHARS_MAX: usize = 64;
/// Conflicts in one answer.
const CONFLICTS_SHOWN_MAX: u32 = 1_000;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(ticket_keys))
        .routes(routes!(scan))
        .routes(routes!(upload))
        .routes(routes!(conflicts))
        .routes(routes!(revoked))
}

/// The public keys that a barcode may be signed with: all that a scanner needs to verify tickets without a line to the server.
#[utoipa::path(get, path = "/v1/gate/keys", tag = "Gate", responses((status = 200, body = TicketKeysJson)))]
async fn ticket_keys(State(app): State<Arc<App>>, _: GateReader) -> Json<TicketKeysJson> {
    let public = app.signer.public();
    let key = TicketKeyJson {
        key_id: public.id().to_string(),
        algorithm: "Ed25519",
        public_key: public.to_string(),
    };
    Json(TicketKeysJson { keys: vec![key] })
}

/// Shows a barcode. One is let in with a ticket; the same `scan_id` has the same answer.
#[utoipa::path(post, path = "/v1/gate/scans", tag = "Gate", request_body = NewScanJson,
    responses((status = 200, body = ScanJson), (status = 422, description = "validation-failed; idempotency-key-reused for another scan of the same id")))]
async fn scan(
    State(app): State<Arc<App>>,
    _: Gate,
    ApiJson(body): ApiJson<NewScanJson>,
) -> Result<Json<ScanJson>, Problem> {
    let mut faults = Faults { prefix: String::new(), found: Vec::new() };
    let look = Look {
        gate: faults.gate(&body.gate),
        at: faults.event(body.event_id.as_deref()),
        scanned_at: body.scanned_at.as_deref().and_then(|text| faults.time(text, app.now())),
        direction: faults.direction(body.direction.as_deref()),
        let_in_offline: false,
    };
    faults.scan_id(&body.scan_id);
    faults.none()?;
    let (scan, _) =
        decide(&app, body.scan_id, &body.barcode, look).await?.map_err(|refusal| reused(&refusal))?;
    Ok(Json(scan))
}

/// Tells what a scanner did while it could not ask. The books decide in the order in which they hear of it; whom the scanner let
/// in against them stays on record as a conflict. May be repeated.
#[utoipa::path(post, path = "/v1/gate/uploads", tag = "Gate", request_body = UploadJson,
    responses((status = 200, body = UploadedJson), (status = 422, description = "validation-failed: nothing was taken; idempotency-key-reused: what came before was")))]
async fn upload(
    State(app): State<Arc<App>>,
    _: Gate,
    ApiJson(body): ApiJson<UploadJson>,
) -> Result<Json<UploadedJson>, Problem> {
    if body.scans.len() > UPLOAD_MAX {
        return Err(Problem::invalid("/scans", format!("at most {UPLOAD_MAX} at once")));
    }
    let (now, mut faults) = (app.now(), Faults { prefix: String::new(), found: Vec::new() });
    let mut looks = Vec::with_capacity(body.scans.len());
    for (index, scan) in body.scans.iter().enumerate() {
        faults.prefix = format!("/scans/{index}");
        looks.push(offline_look(&mut faults, scan, now));
    }
    faults.none()?;
    let mut scans = Vec::with_capacity(looks.len());
    for (index, (scan, look)) in body.scans.into_iter().zip(looks).enumerate() {
        // One after the other: of two with the same ticket, the first is let in.
        let decided = decide(&app, scan.scan_id, &scan.barcode, look).await?;
        let (scan, conflict) = decided.map_err(|refusal| reused(&refusal).with("index", index))?;
        scans.push(UploadedScanJson { scan, conflict });
    }
    Ok(Json(UploadedJson { scans }))
}

fn offline_look(faults: &mut Faults, scan: &OfflineScanJson, now: Timestamp) -> Look {
    faults.scan_id(&scan.scan_id);
    let direction = match scan.verdict.as_str() {
        "ADMIT" => Direction::In,
        "EXITED" => Direction::Out,
        _ => {
            faults.found.push(not_one_of(&format!("{}/verdict", faults.prefix), &["ADMIT", "EXITED"]));
            Direction::In
        }
    };
    Look {
        gate: faults.gate(&scan.gate),
        at: faults.event(scan.event_id.as_deref()),
        scanned_at: faults.time(&scan.scanned_at, now),
        direction,
        let_in_offline: direction == Direction::In,
    }
}

/// How a barcode was shown.
struct Look {
    gate: String,
    at: Option<EventNo>,
    scanned_at: Option<Timestamp>,
    direction: Direction,
    let_in_offline: bool,
}

/// Has a scan decided: what the gate is told, and whether somebody is in against the books.
async fn decide(
    app: &Arc<App>,
    scan_id: String,
    barcode: &str,
    look: Look,
) -> Result<Result<(ScanJson, bool), Refusal>, Problem> {
    let invalid = |scan_id: String| {
        app.metrics.scan(ScanResult::Invalid.word());
        let place = PlaceJson::default();
        let result = ScanResult::Invalid.word();
        ScanJson { scan_id, result, ticket_id: None, place, admitted_at: None, admitted_gate: None }
    };
    // What isn't signed here is of no event: there are no books to ask, or to keep it in.
    let Ok(read) = app.signer.public().read(barcode) else {
        return Ok(Ok((invalid(scan_id), look.let_in_offline)));
    };
    let showing = Showing {
        scan: scan_id.as_str().into(),
        ticket: read.ticket,
        generation: read.generation,
        at: look.at,
        direction: look.direction,
        gate: look.gate,
        scanned_at: look.scanned_at,
        let_in_offline: look.let_in_offline,
    };
    match app.decide(Command::ScanTicket(showing), None).await?.outcome {
        Outcome::TicketScanned(Scanned { result, place, admitted }) => {
            app.metrics.scan(result.word());
            let (admitted_at, admitted_gate) = admitted.map(|(at, gate)| (rfc3339(at), gate)).unzip();
            let place = place_or_none(app, read.ticket.event(), place).await;
            let ticket_id = Some(read.ticket.to_string());
            let scan =
                ScanJson { scan_id, result: result.word(), ticket_id, place, admitted_at, admitted_gate };
            Ok(Ok((scan, look.let_in_offline && result != ScanResult::Admit)))
        }
        // Signed here, for an event that is not.
        Outcome::Refused(Refusal::NotFound) => Ok(Ok((invalid(scan_id), look.let_in_offline))),
        Outcome::Refused(refusal) => Ok(Err(refusal)),
        other => unreachable!("a ticket is judged or that is refused: {other:?}"),
    }
}

fn reused(refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::KeyReused => Problem::new(
            super::problem::Code::IdempotencyKeyReused,
            "This scan_id was used for another scan; each look at a barcode has its own.",
        ),
        other => refused(other),
    }
}

/// What is wrong with a scan, with where it stands.
struct Faults {
    prefix: String,
    found: Vec<FieldError>,
}

impl Faults {
    fn add(&mut self, member: &str, detail: impl Into<String>) {
        self.found.push(FieldError::new(format!("{}/{member}", self.prefix), detail));
    }

    fn scan_id(&mut self, text: &str) {
        if text.is_empty() || text.len() > SCAN_ID_BYTES_MAX || !text.bytes().all(|b| b.is_ascii_graphic()) {
            self.add("scan_id", format!("must be 1 to {SCAN_ID_BYTES_MAX} visible ASCII characters"));
        }
    }

    fn gate(&mut self, text: &str) -> String {
        let length = text.chars().count();
        if length == 0 || length > GATE_CHARS_MAX || text.chars().any(char::is_control) {
            self.add("gate", format!("must be 1 to {GATE_CHARS_MAX} printable characters"));
        }
        text.to_owned()
    }

    fn event(&mut self, text: Option<&str>) -> Option<EventNo> {
        match text?.parse::<EventId>() {
            Ok(id) => Some(id.event()),
            Err(_) => {
                self.add("event_id", "must be an event's id");
                None
            }
        }
    }

    fn time(&mut self, text: &str, now: Timestamp) -> Option<Timestamp> {
        let Some(at) = parse_time(text).filter(|at| *at >= Timestamp::ZERO) else {
            self.add("scanned_at", "must be a time in RFC 3339");
            return None;
        };
        if at > now.plus_ms(AHEAD_MS_MAX) {
            self.add("scanned_at", format!("is in the future: it is {} here", rfc3339(now)));
        }
        Some(at)
    }

    fn direction(&mut self, text: Option<&str>) -> Direction {
        match text {
            None | Some("in") => Direction::In,
            Some("out") => Direction::Out,
            Some(_) => {
                self.found.push(not_one_of(&format!("{}/direction", self.prefix), &["in", "out"]));
                Direction::In
            }
        }
    }

    fn none(self) -> Result<(), Problem> {
        if self.found.is_empty() { Ok(()) } else { Err(Problem::validation(self.found)) }
    }
}

/// Whom scanners let in by themselves and the books would not have let in.
#[utoipa::path(get, path = "/v1/events/{event_id}/gate/conflicts", tag = "Gate", params(("event_id" = String, Path)),
    responses((status = 200, body = ConflictsJson), (status = 404)))]
async fn conflicts(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: GateReader,
) -> Result<Json<ConflictsJson>, Problem> {
    let sale = app.sale(id).await?.ok_or_else(not_found)?;
    let found =
        app.read(id.event(), move |reader| reader.gate_conflicts(id.event(), CONFLICTS_SHOWN_MAX)).await?;
    let manifest = sale.manifest.as_ref();
    let conflicts = found.into_iter().map(|GateConflict { scan, place, admitted_at, admitted_gate }| {
        let place = manifest.zip(place).map(|(manifest, place)| place_json(manifest, place));
        ConflictJson {
            scan_id: scan.id.to_string(),
            ticket_id: scan.ticket.to_string(),
            place: place.unwrap_or_default(),
            gate: scan.gate,
            scanned_at: rfc3339(scan.scanned_at),
            received_at: rfc3339(scan.received_at),
            result: scan.result.word(),
            admitted_at: admitted_at.map(rfc3339),
            admitted_gate,
        }
    });
    Ok(Json(ConflictsJson { conflicts: conflicts.collect() }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Since {
    since: Option<u64>,
}

/// Which tickets a scanner that can't ask must not trust: all of them, or those that have changed since a version.
#[utoipa::path(get, path = "/v1/events/{event_id}/gate/revoked", tag = "Gate",
    params(("event_id" = String, Path), ("since" = Option<u64>, Query, description = "the version of the answer before")),
    responses((status = 200, body = RevokedJson), (status = 404)))]
async fn revoked(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: GateReader,
    ApiQuery(Since { since }): ApiQuery<Since>,
) -> Result<Json<RevokedJson>, Problem> {
    app.event(id).await?.ok_or_else(not_found)?;
    // Of an event that was called off it is every ticket.
    let look = move |store: &Store| store.read(|reader| reader.revoked_tickets(id.event(), since));
    let found = app.heavy_at(app.home_of(id.event())?, look).await?;
    let found = found.ok_or_else(not_found)?;
    let tickets = found.tickets.into_iter().map(|(ticket, generation, status)| RevokedTicketJson {
        ticket_id: ticket.to_string(),
        status: status.word(),
        generation,
    });
    Ok(Json(RevokedJson { version: found.version, since: found.since, tickets: tickets.collect() }))
}
