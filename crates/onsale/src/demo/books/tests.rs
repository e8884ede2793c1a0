//! What the comparison of the books finds, and what it lets pass.

use super::*;

fn claim(number: usize, seats: &[u32], told: Told) -> Claim {
    Claim {
        token: "token".into(),
        hold_id: format!("hld_{number}"),
        seats: seats.to_vec(),
        places: 0,
        total_minor: 100 * seats.len() as i64,
        order_id: (told != Told::Open).then(|| format!("ord_{number}")),
        told,
    }
}

fn order(number: usize, seats: &[u32], statuses: [&str; 2]) -> (String, OrderFound) {
    let order_id = format!("ord_{number}");
    let order = OrderFound {
        order_id: order_id.clone(),
        hold_id: format!("hld_{number}"),
        seats: seats.to_vec(),
        prices_minor: vec![100; seats.len()],
        places: 0,
        total_minor: 100 * seats.len() as i64,
        order_status: statuses[0].to_owned(),
        payment_status: statuses[1].to_owned(),
    };
    (order_id, order)
}

fn money(number: usize, captured: i64, voided: i64) -> ProviderOrderSeen {
    let order_id = Some(format!("ord_{number}"));
    ProviderOrderSeen { order_id, authorised: captured + voided, captured, voided, refunded: 0 }
}

/// Books of a hall of three seats.
struct Books {
    claims: Vec<Claim>,
    found: Found,
    provider: Vec<ProviderOrderSeen>,
    report: ReportSeen,
}

/// Ada has two seats, Ben one; Cleo was declined, Dan's payment came too late, Eve walked away.
fn hall() -> Books {
    let hold = HoldFound {
        hold_id: "hld_5".into(),
        seats: vec![0, 1],
        places: 0,
        total_minor: 200,
        status: "EXPIRED".into(),
    };
    Books {
        claims: vec![
            claim(1, &[0, 1], Told::Confirmed),
            claim(2, &[2], Told::Confirmed),
            claim(3, &[2], Told::Over),
            claim(4, &[0], Told::Over),
            claim(5, &[0, 1], Told::Open),
        ],
        found: Found {
            orders: HashMap::from([
                order(1, &[0, 1], ["CONFIRMED", "CAPTURED"]),
                order(2, &[2], ["CONFIRMED", "CAPTURED"]),
                order(3, &[2], ["CANCELLED", "DECLINED"]),
                order(4, &[0], ["EXPIRED", "VOIDED"]),
            ]),
            holds: HashMap::from([(hold.hold_id.clone(), hold)]),
        },
        provider: vec![money(1, 200, 0), money(2, 100, 0), money(3, 0, 0), money(4, 0, 100)],
        report: ReportSeen {
            sold: 3,
            orders: 2,
            gross_minor: 300,
            captured_minor: 300,
            ..ReportSeen::default()
        },
    }
}

/// Plants an error and looks for what is said of it.
#[track_caller]
fn check(plant: impl FnOnce(&mut Books), said: &[&str]) {
    let mut books = hall();
    plant(&mut books);
    let mut wrong = compare_claims(&books.claims, &books.found);
    wrong.extend(compare_seats(&books.found, 3));
    wrong.extend(compare_money(&books.found, &books.provider, &books.report, 3));
    assert_eq!(wrong.len(), said.len(), "{wrong:#?}");
    for (wrong, said) in wrong.iter().zip(said) {
        assert!(wrong.contains(said), "{wrong:?} should say {said:?}");
    }
}

fn of<'a>(books: &'a mut Books, order: &str) -> &'a mut OrderFound {
    books.found.orders.get_mut(order).unwrap()
}

#[test]
fn books_that_agree_have_nothing_wrong() {
    check(|_| {}, &[]);
}

#[test]
fn what_was_acknowledged_must_be_there_as_it_was() {
    check(|books| drop(books.found.holds.remove("hld_5")), &["hld_5: it was acknowledged, and is missing"]);
    check(
        |books| drop(books.found.orders.remove("ord_3")),
        &["ord_3: it was acknowledged, and is missing", "ord_3: the provider knows it, and no buyer does"],
    );
    check(|books| books.claims[4].seats = vec![1], &["hld_5: its seats are [0, 1], not [1]"]);
    check(|books| books.claims[2].total_minor = 1, &["ord_3: its total is 100, not 1"]);
    check(|books| of(books, "ord_3").hold_id = "hld_9".into(), &["ord_3: it belongs to hld_9"]);
    check(|books| books.claims[3].told = Told::Confirmed, &["ord_4: its buyer was told Confirmed"]);
    check(
        |books| books.claims[0].told = Told::Over,
        &["ord_1: its buyer was told Over, and it is CONFIRMED"],
    );
    check(|books| books.found.holds.get_mut("hld_5").unwrap().status = "ACTIVE".into(), &["it is ACTIVE"]);
}

#[test]
fn a_seat_has_one_owner() {
    check(
        |books| {
            books.claims[1].seats = vec![1];
            of(books, "ord_2").seats = vec![1];
        },
        &["seat 1: it was sold twice", "1 seats were sold to nobody that is known, seat 2 first"],
    );
    check(
        |books| {
            books.claims[1].seats = vec![7];
            of(books, "ord_2").seats = vec![7];
        },
        &["ord_2: there is no seat 7", "1 seats were sold to nobody"],
    );
}

#[test]
fn money_is_taken_for_confirmed_orders_and_for_nothing_else() {
    check(
        |books| books.provider.push(money(9, 100, 0)),
        &["ord_9: the provider knows it, and no buyer does", "the provider took 400, the report says 300"],
    );
    check(
        |books| books.provider[3] = money(4, 100, 0),
        &["ord_4: 100 was taken, and it is EXPIRED", "the provider took 400, the report says 300"],
    );
    check(|books| books.provider[3].voided = 0, &["ord_4: what was set aside is neither taken nor let go"]);
    check(|books| books.provider[2].order_id = None, &["money of no order"]);
    check(
        |books| drop(books.provider.remove(1)),
        &["ord_2: it is confirmed, and the provider doesn't know it", "the provider took 200"],
    );
    check(
        |books| books.provider[0] = money(1, 199, 1),
        &["ord_1: 199 was taken for a total of 200", "the provider took 299"],
    );
    check(
        |books| of(books, "ord_4").payment_status = "VOID_PENDING".into(),
        &["ord_4: its payment is not closed: EXPIRED, VOID_PENDING"],
    );
    check(|books| books.report.cases_open = 1, &["cases_open: 1"]);
}
