//! Tickets as their buyers have them: as JSON, or as a page to be printed.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use onsale_core::command::{Command, Outcome};
use onsale_core::event::Event;
use onsale_core::id::{AccountId, EventNo, OrderId, TicketId};
use onsale_core::ticket::{Place, Ticket, TicketStatus};
use onsale_store::{Named, Role};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::auth::Caller;
use crate::catalog::ManifestIndex;
use crate::tickets::barcode::Barcode;
use crate::tickets::page::{self, Card};

use super::caller::{AnyCaller, Operator, PathId};
use super::extract::ApiJson;
use super::holds::may_see;
use super::problem::{Code, Problem};
use super::reasons::{not_found, refused};
use super::wire::gate::{PlaceJson, ReissueJson, TicketJson, TicketsJson};

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(order_tickets))
}

pub(crate) fn operator_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(reissue))
}

/// The tickets of an order; none until its money has been taken. With `Accept: text/html`, the page to be printed.
#[utoipa::path(get, path = "/v1/orders/{order_id}/tickets", tag = "Buyer", params(("order_id" = String, Path)),
    responses((status = 200, content((TicketsJson = "application/json"), (String = "text/html"))), (status = 404)))]
async fn order_tickets(
    State(app): State<Arc<App>>,
    PathId(id): PathId<OrderId>,
    AnyCaller(caller): AnyCaller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let account =
        app.read(id.event(), move |reader| reader.order_account(id)).await?.ok_or_else(not_found)?;
    may_have(&caller, &account)?;
    let tickets = app.read(id.event(), move |reader| reader.tickets(id)).await?;
    let sale = app.sale_of(id.event()).await?.ok_or_else(not_found)?;
    let manifest = sale.manifest.clone().ok_or_else(not_found)?;
    // A barcode is as good as the ticket: no cache keeps it.
    let private = [(header::CACHE_CONTROL, "private, no-store"), (header::VARY, "Accept")];
    if !wants_page(&headers) {
        let tickets = tickets.iter().map(|ticket| ticket_json(&app, &manifest, ticket)).collect();
        return Ok((private, Json(TicketsJson { tickets })).into_response());
    }
    let shared = Arc::clone(&app);
    let page = app.heavy(move || tickets_page(&shared, &sale.event, &manifest, id, &tickets)).await?;
    let about = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, page::CONTENT_SECURITY_POLICY.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    Ok((private, about, page).into_response())
}

/// A buyer has its own tickets. Whoever reads reports has no use for what opens the gate.
fn may_have(caller: &Caller, account: &AccountId) -> Result<(), Problem> {
    match caller {
        Caller::Key(_, Role::Reader) => {
            Err(Problem::new(Code::Forbidden, "Tickets are for their buyers and for operators."))
        }
        Caller::Key(_, Role::Operator | Role::Partner | Role::Gate) | Caller::Buyer(_) => {
            may_see(caller, account)
        }
    }
}

/// Whether a page is wanted rather than JSON. A browser says so; whoever says nothing takes JSON.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted: Vec<&str> = accepted.flat_map(|value| value.split(',')).collect();
    let weight = |wanted: &str| {
        let ranges = accepted.iter().filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let is_it = parts.next()?.eq_ignore_ascii_case(wanted);
            let q = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            is_it.then(|| q.map_or(1.0, |q| q.parse().unwrap_or(0.0)))
        });
        ranges.fold(0.0, f32::max)
    };
    let page = weight("text/html");
    page > 0.0 && page >= weight("application/json")
}

pub(super) fn ticket_json(app: &App, manifest: &ManifestIndex, ticket: &Ticket) -> TicketJson {
    let barcode = Barcode { ticket: ticket.id, generation: ticket.generation };
    TicketJson {
        ticket_id: ticket.id.to_string(),
        place: place_json(manifest, ticket.place),
        barcode: (ticket.status == TicketStatus::Valid).then(|| app.signer.write(barcode)),
        status: ticket.status.word(),
        generation: ticket.generation,
    }
}

/// A place by the organiser's names.
pub(super) fn place_json(manifest: &ManifestIndex, place: Place) -> PlaceJson {
    let manifest = &manifest.view.manifest;
    let none = PlaceJson::default;
    match place {
        Place::Seat(ordinal) => manifest.seats.get(ordinal.0 as usize).map_or_else(none, |seat| PlaceJson {
            seat_id: Some(seat.seat_id.clone()),
            section: manifest.sections.get(seat.section as usize).cloned(),
            row: Some(seat.row.clone()),
            seat: Some(seat.seat.clone()),
            ga_area: None,
        }),
        Place::Area(area) => manifest
            .ga_areas
            .get(area.0 as usize)
            .map_or_else(none, |area| PlaceJson { ga_area: Some(area.ga_area.clone()), ..none() }),
    }
}

/// What is known of a place; nothing while that can't be read. Whoever stands at the gate has their answer all the same.
pub(super) async fn place_or_none(app: &Arc<App>, event: EventNo, place: Option<Place>) -> PlaceJson {
    let Some(place) = place else {
        return PlaceJson::default();
    };
    let manifest = app.sale_of(event).await.ok().flatten().and_then(|sale| sale.manifest.clone());
    manifest.map_or_else(PlaceJson::default, |manifest| place_json(&manifest, place))
}

fn tickets_page(
    app: &App,
    event: &Event,
    manifest: &ManifestIndex,
    order: OrderId,
    tickets: &[Ticket],
) -> String {
    let card = |ticket: &Ticket| {
        let (id, place) = (ticket.id.to_string(), page_place(manifest, ticket.place));
        match ticket.status {
            TicketStatus::Valid => {
                let barcode = Barcode { ticket: ticket.id, generation: ticket.generation };
                Card::good(id, place, &app.signer.write(barcode))
            }
            TicketStatus::Suspended => Card::void(id, place, "Not valid: being refunded"),
            TicketStatus::Revoked => Card::void(id, place, "Not valid: refunded"),
        }
    };
    let cards: Vec<Card> = tickets.iter().map(card).collect();
    page::tickets(&event.name, event.starts_at, &event.timezone, &order.to_string(), &cards)
}

fn page_place(manifest: &ManifestIndex, place: Place) -> page::Place {
    let PlaceJson { section, row, seat, ga_area, .. } = place_json(manifest, place);
    match ga_area {
        Some(area) => page::Place::Standing { area },
        None => page::Place::Seat {
            section: section.unwrap_or_default(),
            row: row.unwrap_or_default(),
            seat: seat.unwrap_or_default(),
        },
    }
}

/// Makes the barcodes of a ticket worthless that are out there, and gives it a new one. Asked again about the same generation,
/// it gives the ticket as it stands.
#[utoipa::path(post, path = "/v1/tickets/{ticket_id}/reissue", tag = "Operator", request_body = ReissueJson,
    params(("ticket_id" = String, Path)),
    responses((status = 200, body = TicketJson), (status = 404), (status = 409, description = "action-not-possible")))]
async fn reissue(
    State(app): State<Arc<App>>,
    PathId(id): PathId<TicketId>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<ReissueJson>,
) -> Result<Json<TicketJson>, Problem> {
    if body.generation == 0 {
        return Err(Problem::invalid("/generation", "generations begin with 1"));
    }
    let command = Command::ReissueTicket { ticket: id, generation: body.generation, actor: key.to_string() };
    match app.decide(command, None).await?.outcome {
        Outcome::TicketReissued => {}
        Outcome::Refused(refusal) => return Err(refused(&refusal)),
        other => unreachable!("a ticket is issued anew or that is refused: {other:?}"),
    }
    let ticket = app.read(id.event(), move |reader| reader.ticket(id)).await?.ok_or_else(not_found)?;
    let sale = app.sale_of(id.event()).await?.ok_or_else(not_found)?;
    let manifest = sale.manifest.clone().ok_or_else(not_found)?;
    tracing::info!(ticket.id = %id, actor = %key, "Issued ticket {id} anew");
    Ok(Json(ticket_json(&app, &manifest, &ticket)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_for_those_who_ask_for_one() {
        let wants = |accept: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, value.parse().unwrap());
            }
            wants_page(&headers)
        };
        for page in [
            &["text/html"][..],
            &["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
            &["application/json;q=0.5, TEXT/HTML;q=0.9"],
            &["image/png", "text/html; charset=utf-8"],
        ] {
            assert!(wants(page), "{page:?}");
        }
        for json in [
            &[][..],
            &["*/*"],
            &["application/json"],
            &["application/json, text/html;q=0.9"],
            &["text/html;q=0"],
            &["text/html;q=x"],
            &["text/htmlx"],
        ] {
            assert!(!wants(json), "{json:?}");
        }
    }
}
