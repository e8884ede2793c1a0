//! Money given back for what was sold: the provider first, the books after its proof, and a seat resold as a new sale.

mod faults;
mod parts;

use serde_json::{Value, json};

use crate::util::{App, Buyer, Hall, PLACE_PRICE, SEAT_PRICE, text};

/// What an order of two seats and three places costs.
const TOTAL: i64 = 2 * SEAT_PRICE + 3 * PLACE_PRICE;

/// An order of two seats and three places that Ada has paid for.
struct Sold {
    hall: Hall,
    ada: Buyer,
    order_id: String,
}

async fn sold(app: &App) -> Sold {
    let hall = app.grounds(json!({}), &["A-1", "A-2"], &[("Floor", 10, 2)]).await;
    let ada = app.buyer().await;
    let wish = json!({ "seats": ["A-1", "A-2"], "ga": [{ "ga_area": "Floor", "quantity": 3 }] });
    let hold = ada.wish(&hall, &wish).await.ok(201);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    Sold { hall, ada, order_id }
}

impl Sold {
    /// Digits of the seats, and how many places are free.
    async fn shown(&self, app: &App) -> (String, i64) {
        (app.seat_states(&self.hall).await, app.available(&self.hall, "Floor").await)
    }

    /// What is left of the provider's money.
    async fn kept(&self, app: &App) -> i64 {
        let [_, captured, _, refunded] = app.provider.money(&self.order_id).await;
        captured - refunded
    }

    /// That nothing has come of refunds.
    async fn stands(&self, app: &App) {
        let order = self.ada.expect_order(&self.order_id, "CONFIRMED CAPTURED").await;
        assert_eq!((&order["refunded_minor"], &order["returned_seats"]), (&json!(0), &json!([])));
        assert_eq!(self.shown(app).await, ("22".to_owned(), 7));
        assert_eq!(self.kept(app).await, TOTAL);
    }
}

fn statuses(refunds: &[Value]) -> Vec<&str> {
    refunds.iter().map(|refund| text(refund, "status")).collect()
}
