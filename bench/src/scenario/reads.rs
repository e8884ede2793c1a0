//! What buyers look at while the sale is busy: the order, the seat map.

use std::cell::RefCell;
use std::rc::Rc;

use crate::client::{Answer, write_request};
use crate::hall::shuffled_groups;
use crate::load::{self, Measured};
use crate::report::{Must, Report};
use crate::server::Server;

use super::Setup;
use super::checkouts::{accepted_orders, place};
use super::holds::holds;

/// 50,010 seats in front of the readers.
const ROWS_READ: usize = 1_667;
/// The hall that is being sold meanwhile, in the same database.
const ROWS_SOLD: usize = 10_000;
/// Orders whose status is asked for.
const ORDERS: usize = 200;
/// Questions a second.
const STATUS_RATE: f64 = 500.0;
const MAP_RATE: f64 = 20.0;
/// Enough that a slow answer doesn't hold back the next question.
const READERS: usize = 32;

pub(super) async fn run(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&setup.onsale).await?;
    let read = server.event(ROWS_READ).await?;
    let sold = server.event(ROWS_SOLD).await?;
    let placed = place(setup, &server, &read, ORDERS).await?;
    let (orders, _) = accepted_orders(setup, &server, placed).await?;
    let orders = Rc::new(RefCell::new(orders.into_iter().cycle()));
    let status = move |_: usize, _: Option<Answer<'_>>, request: &mut Vec<u8>| {
        let Some((account, order)) = orders.borrow_mut().next() else { return false };
        let headers = Server::buyer_headers(account);
        write_request(request, format_args!("GET /v1/orders/{order}"), &headers, "");
        true
    };
    let line = format!("GET /v1/events/{read}/seats");
    let map = move |_: usize, _: Option<Answer<'_>>, request: &mut Vec<u8>| {
        write_request(request, format_args!("{line}"), "", "");
        true
    };
    let mut groups = shuffled_groups(ROWS_SOLD, setup.seed).into_iter();
    let load = holds(&sold, move || groups.next());
    let (load, status, map) = tokio::try_join!(
        load::closed(server.buyers, setup.connections, setup.lasts, load),
        load::open(server.buyers, READERS, STATUS_RATE, setup.lasts, status),
        load::open(server.buyers, READERS, MAP_RATE, setup.lasts, map),
    )?;
    let holds = format!("beside {:.0} holds/s", load.per_second(load.count(201)));
    add(report, "order status", &status, 200.0, &holds);
    add(report, "seat map of 50,010 seats", &map, 500.0, &holds);
    Ok(())
}

fn add(report: &mut Report, name: &str, measured: &Measured, ms_max: f64, beside: &str) {
    let note = format!("p50 {:.2} ms, {}, {beside}", measured.ms(None, 0.5), measured.statuses());
    let p99 = measured.ms(Some(200), 0.99);
    report.add(format!("{name}, p99"), p99, "ms", note, Some(Must::AtMost(ms_max)));
}
