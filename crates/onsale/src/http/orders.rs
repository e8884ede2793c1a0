//! Orders as their buyers see them.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use onsale_core::id::OrderId;
use onsale_core::order::OrderStatus;
use onsale_core::payment::PaymentStatus;
use onsale_store::{Named, OrderView};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

use super::caller::{AnyCaller, PathId};
use super::extract::ApiQuery;
use super::holds::{may_see, priced, priced_places};
use super::problem::Problem;
use super::reasons::not_found;
use super::refunds::returned_places;
use super::wire::sale::{NextActionJson, OrderJson};

/// Longest an answer is held back.
const WAIT_S_MAX: u64 = 30;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(get_order))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    wait_s: Option<u64>,
}

/// An order as it stands; with `wait_s`, as soon as it stands differently.
#[utoipa::path(get, path = "/v1/orders/{order_id}", tag = "Buyer",
    params(("order_id" = String, Path), ("wait_s" = Option<u64>, Query, description = "hold the answer until the state changes, at most 30")),
    responses((status = 200, body = OrderJson), (status = 404)))]
async fn get_order(
    State(app): State<Arc<App>>,
    PathId(id): PathId<OrderId>,
    AnyCaller(caller): AnyCaller,
    ApiQuery(wait): ApiQuery<Wait>,
) -> Result<Json<OrderJson>, Problem> {
    let wait_s = wait.wait_s.unwrap_or(0);
    if wait_s > WAIT_S_MAX {
        return Err(Problem::invalid("/query/wait_s", format!("must be at most {WAIT_S_MAX}")));
    }
    let end = Instant::now() + Duration::from_secs(wait_s);
    let read = || app.read(id.event(), move |reader| reader.order(id));
    let first = read().await?.ok_or_else(not_found)?;
    may_see(&caller, &first.order.account)?;
    let mut view = first.clone();
    while wait_s > 0 && is_open(&view) && is_same(&view, &first) && !*app.stopping.borrow() {
        // The signal is asked for before the look, so that no change falls between the two.
        let Some(signal) = app.followers.orders.next_change(id) else {
            break;
        };
        view = read().await?.ok_or_else(not_found)?;
        if !is_same(&view, &first) {
            break;
        }
        let over = timeout_at(end, signal).await.is_err();
        // Looked at once more even then: another process's change rings no bell here.
        view = read().await?.ok_or_else(not_found)?;
        if over {
            break;
        }
    }
    let sale = app.sale_of(id.event()).await?.ok_or_else(not_found)?;
    let manifest = sale.manifest.clone().ok_or_else(not_found)?;
    let OrderView { order, seats, ga, refunded_minor, next_action_url } = view;
    Ok(Json(OrderJson {
        order_id: order.id.to_string(),
        hold_id: order.hold.to_string(),
        event_id: sale.event.id.to_string(),
        order_status: order.status.word(),
        payment_status: order.payment_status.word(),
        seats: priced(&manifest, &seats),
        ga: priced_places(&manifest, &ga),
        total_minor: order.total.amount_minor,
        refunded_minor,
        returned_seats: order.returned_seats.iter().map(|seat| manifest.seat_id(*seat).to_owned()).collect(),
        returned_ga: returned_places(&manifest, &order.returned_ga),
        currency: order.total.currency.to_string(),
        next_action: next_action_url.map(|url| NextActionJson { kind: "redirect", url }),
        tickets_ready: order.ticketed,
    }))
}

/// Whether anything is still to come: of an order that is settled there is nothing to wait for.
fn is_open(view: &OrderView) -> bool {
    match view.order.payment_status {
        PaymentStatus::Pending
        | PaymentStatus::RequiresAction
        | PaymentStatus::Unknown
        | PaymentStatus::Authorized
        | PaymentStatus::VoidPending
        | PaymentStatus::RefundPending => true,
        PaymentStatus::Declined => view.order.status == OrderStatus::AwaitingPayment,
        PaymentStatus::Captured => view.order.status == OrderStatus::Confirmed && !view.order.ticketed,
        PaymentStatus::Voided | PaymentStatus::Refunded => false,
    }
}

fn is_same(now: &OrderView, before: &OrderView) -> bool {
    now.order.status == before.order.status
        && now.order.payment_status == before.order.payment_status
        && now.order.ticketed == before.order.ticketed
        && now.next_action_url == before.next_action_url
}
