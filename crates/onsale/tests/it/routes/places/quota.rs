//! The quota plane: an area's capacity over its buckets, and what moves between them.

use serde_json::{Value, json};

use crate::util::{App, Hall, fresh_key, off_balance, text};

async fn floor(app: &App, buckets: u16) -> Hall {
    app.grounds(
        json!({ "seats_per_hold_max": 50, "tickets_per_account_max": 100 }),
        &["A-1"],
        &[("Floor", 100, buckets)],
    )
    .await
}

/// Capacity, held and sold of each bucket of the first area.
fn buckets(areas: &Value) -> Vec<[i64; 3]> {
    let of =
        |bucket: &Value| ["capacity", "held", "sold"].map(|member| bucket[member].as_i64().expect("a count"));
    areas["areas"][0]["buckets"].as_array().expect("buckets").iter().map(of).collect()
}

#[tokio::test]
async fn capacity_moves_in_two_steps_and_counts_between_them() {
    let app = App::start().await;
    let hall = floor(&app, 2).await;
    let ada = app.buyer().await;
    assert_eq!(buckets(&app.areas(&hall).await), [[50, 0, 0], [50, 0, 0]]);
    let begun = app.transfer(&hall, "Floor", (0, 1), 30).await.ok(202);
    assert_eq!(begun["status"], "IN_FLIGHT");
    let areas = app.areas(&hall).await;
    assert_eq!(buckets(&areas), [[20, 0, 0], [50, 0, 0]]);
    assert_eq!(areas["areas"][0]["capacity"], 100, "what is between buckets is still the area's");
    assert_eq!(areas["in_flight"][0]["transfer_id"], begun["transfer_id"]);
    assert_eq!((off_balance(app.data.path()), app.available(&hall, "Floor").await), (0, 70));
    // A hold takes from several buckets if need be.
    ada.places(&hall, "Floor", 50).await.ok(201);
    ada.places(&hall, "Floor", 20).await.ok(201);
    ada.places(&hall, "Floor", 1).await.problem(409, "not-enough-available");
    app.transfer(&hall, "Floor", (1, 0), 1).await.problem(409, "not-enough-available");
    app.worker("quota").await;
    let areas = app.areas(&hall).await;
    assert_eq!((buckets(&areas), &areas["in_flight"]), (vec![[20, 20, 0], [80, 50, 0]], &json!([])));
    app.worker("quota").await;
    assert_eq!(app.areas(&hall).await, areas, "it arrives once");
    ada.places(&hall, "Floor", 30).await.ok(201);
    app.finish().await;
}

#[tokio::test]
async fn a_transfer_is_done_once_for_its_key() {
    let app = App::start().await;
    let hall = floor(&app, 2).await;
    let key = fresh_key();
    let ask = |quantity: u32| {
        let body = json!({ "ga_area": "Floor", "from_bucket": 0, "to_bucket": 1, "quantity": quantity });
        app.operator.post(&hall.path("/ga/transfers"), &body).key(&key)
    };
    let first = ask(10).await.ok(202);
    let again = ask(10).await;
    assert!(again.replayed());
    assert_eq!(again.ok(202), first);
    app.worker("quota").await;
    assert_eq!(ask(10).await.ok(202), first, "even when it has arrived");
    ask(11).await.problem(422, "idempotency-key-reused");
    assert_eq!(buckets(&app.areas(&hall).await), [[40, 0, 0], [60, 0, 0]]);
    app.finish().await;
}

#[tokio::test]
async fn what_can_not_be_moved_is_refused_with_its_place() {
    let app = App::start().await;
    let hall = floor(&app, 2).await;
    let body = |member: &str, value: Value| {
        let mut body = json!({ "ga_area": "Floor", "from_bucket": 0, "to_bucket": 1, "quantity": 1 });
        body[member] = value;
        body
    };
    let before = app.areas(&hall).await;
    let odd = [json!(0), json!(-1), json!(1.5), json!("1"), json!(4_294_967_296u64), json!(null)];
    let mut cases: Vec<(Value, &str)> =
        odd.into_iter().map(|odd| (body("quantity", odd), "/quantity")).collect();
    cases.extend([
        (body("to_bucket", json!(0)), "/to_bucket"),
        (body("to_bucket", json!(2)), "/to_bucket"),
        (body("to_bucket", json!(65_536)), "/to_bucket"),
        (body("from_bucket", json!(9)), "/from_bucket"),
        (body("from_bucket", json!(-1)), "/from_bucket"),
        (body("ga_area", json!("floor")), "/ga_area"),
        (body("more", json!(1)), "/more"),
    ]);
    for (body, place) in cases {
        let reply = app.operator.post(&hall.path("/ga/transfers"), &body).key(&fresh_key()).await;
        let problem = reply.problem(422, "validation-failed");
        assert_eq!(text(&problem["errors"][0], "pointer"), place, "{body}: {problem}");
    }
    for many in [51, 100, 2_147_483_648u32, u32::MAX] {
        let problem = app.transfer(&hall, "Floor", (0, 1), many).await.problem(409, "not-enough-available");
        assert_eq!(problem["ga_area"], "Floor");
    }
    let body = json!({ "ga_area": "Floor", "from_bucket": 0, "to_bucket": 1, "quantity": 1 });
    app.operator.post(&hall.path("/ga/transfers"), &body).await.problem(400, "idempotency-key-missing");
    let ada = app.buyer().await;
    let denied =
        ada.client.at(&app.operator.base).post(&hall.path("/ga/transfers"), &body).key(&fresh_key()).await;
    assert!(matches!(denied.status, 401 | 403), "{}", denied.text);
    assert_eq!(app.areas(&hall).await, before);
    app.finish().await;
}

/// Before a sale its areas may be laid out anew, and a transfer would be of what there is no more.
#[tokio::test]
async fn nothing_moves_before_the_sale_is_opened() {
    let app = App::start().await;
    let new = json!({ "name": "Soon", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z" });
    let hall = app.drafted(&new, &["A-1"], &[("Floor", 100, 2)]).await;
    app.transfer(&hall, "Floor", (0, 1), 1).await.problem(409, "action-not-possible");
    app.finish().await;
}

#[tokio::test]
async fn a_capacity_is_never_below_what_is_in_use() {
    let app = App::start().await;
    let hall = floor(&app, 2).await;
    let ada = app.buyer().await;
    let set = |capacity: Value| {
        app.operator.put(&hall.path("/ga/capacity"), &json!({ "ga_area": "Floor", "capacity": capacity }))
    };
    let hold = ada.places(&hall, "Floor", 50).await.ok(201);
    let order_id = ada.pay(&hold).await;
    ada.places(&hall, "Floor", 20).await.ok(201);
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    let before = app.areas(&hall).await;
    let problem = set(json!(69)).await.problem(409, "not-enough-available");
    assert_eq!(problem["ga_area"], "Floor");
    for odd in [json!(0), json!(-1), json!(10_000_001), json!(1.5), json!("70"), json!(null)] {
        let problem = set(odd.clone()).await.problem(422, "validation-failed");
        assert_eq!(text(&problem["errors"][0], "pointer"), "/capacity", "{odd}");
    }
    assert_eq!(app.areas(&hall).await, before);
    set(json!(70)).await.ok(200);
    assert_eq!((app.available(&hall, "Floor").await, off_balance(app.data.path())), (0, 0));
    app.buyer().await.places(&hall, "Floor", 1).await.problem(409, "not-enough-available");
    set(json!(71)).await.ok(200);
    app.buyer().await.places(&hall, "Floor", 1).await.ok(201);
    // What is between two buckets is not free: it can't be taken away.
    set(json!(81)).await.ok(200);
    app.transfer(&hall, "Floor", (0, 1), 10).await.ok(202);
    set(json!(80)).await.problem(409, "not-enough-available");
    app.worker("quota").await;
    set(json!(80)).await.ok(200);
    set(json!(10_000_000)).await.ok(200);
    app.finish().await;
}

#[tokio::test]
async fn a_party_has_a_bucket_of_its_own() {
    let app = App::start().await;
    let hall = floor(&app, 1).await;
    app.operator.post(&hall.path("/allocations"), &json!({ "name": "Sponsors" })).await.ok(201);
    let new = json!({ "ga_area": "Floor", "allocation": "Sponsors" });
    let bucket = app.operator.post(&hall.path("/ga/buckets"), &new).await.ok(201);
    assert_eq!((&bucket["bucket"], &bucket["capacity"]), (&json!(1), &json!(0)));
    app.transfer(&hall, "Floor", (0, 1), 40).await.ok(202);
    app.worker("quota").await;
    assert_eq!(app.available(&hall, "Floor").await, 60, "a party's places are not shown as anyone's");
    app.code(&hall, &json!({ "code": "SPONSOR-1", "allocation": "Sponsors", "tickets_max": 100 })).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    ada.places(&hall, "Floor", 50).await.ok(201);
    ben.places(&hall, "Floor", 11).await.problem(409, "not-enough-available");
    // With the code there are the party's own, which go first, and everyone's.
    let with = |quantity: u32| json!({ "ga": [{ "ga_area": "Floor", "quantity": quantity }], "access_code": "sponsor-1" });
    let hold = ben.wish(&hall, &with(45)).await.ok(201);
    assert_eq!(buckets(&app.areas(&hall).await), [[60, 55, 0], [40, 40, 0]]);
    assert_eq!(app.available(&hall, "Floor").await, 5);
    ben.release(&hold).await.ok(204);
    assert_eq!((app.available(&hall, "Floor").await, app.code_in_use(&hall, "SPONSOR-1").await), (10, 0));
    // Returned to the sale.
    app.transfer(&hall, "Floor", (1, 0), 40).await.ok(202);
    app.worker("quota").await;
    assert_eq!(app.available(&hall, "Floor").await, 50);
    for (body, place) in [
        (json!({ "ga_area": "Floor", "allocation": "Nobody" }), "/allocation"),
        (json!({ "ga_area": "Roof" }), "/ga_area"),
    ] {
        let problem =
            app.operator.post(&hall.path("/ga/buckets"), &body).await.problem(422, "validation-failed");
        assert_eq!(text(&problem["errors"][0], "pointer"), place);
    }
    for _ in 2..64 {
        app.operator.post(&hall.path("/ga/buckets"), &json!({ "ga_area": "Floor" })).await.ok(201);
    }
    app.operator
        .post(&hall.path("/ga/buckets"), &json!({ "ga_area": "Floor" }))
        .await
        .problem(409, "action-not-possible");
    app.finish().await;
}

/// Killed with capacity on its way: it still counts, and arrives on the next server, once.
#[tokio::test]
async fn a_killed_servers_transfers_arrive_on_the_next_one() {
    let app = App::start().await;
    let hall = floor(&app, 4).await;
    for to in 1..4 {
        app.transfer(&hall, "Floor", (0, to), 5).await.ok(202);
    }
    let data = app.kill();
    assert_eq!(off_balance(data.path()), 0);
    let app = App::options().data(data).start().await;
    let areas = app.areas(&hall).await;
    assert_eq!(areas["in_flight"].as_array().map(Vec::len), Some(3), "{areas}");
    assert_eq!(app.available(&hall, "Floor").await, 85);
    app.worker("quota").await;
    assert_eq!(buckets(&app.areas(&hall).await), [[10, 0, 0], [30, 0, 0], [30, 0, 0], [30, 0, 0]]);
    assert_eq!((app.available(&hall, "Floor").await, off_balance(app.data.path())), (100, 0));
    app.finish().await;
}
