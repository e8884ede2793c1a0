//! One buyer, from coming to going.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, bail};
use hyper::{Method, StatusCode};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::arena::PITCH;
use super::character::{Character, Manner};
use super::claims::{Claim, ClaimNo, Told};
use super::client::{Ask, Client};
use super::crowd::{Crowd, PAYMENT_GRACE};
use super::house::Wish;
use super::manner::send;
use super::measures::{Counted, Timed};
use super::settle;
use super::wire::{BegunSeen, HoldSeen, OrderSeen, ProblemSeen, SeatsSeen, SessionSeen};

/// How long an order's status is waited for in one request. The server waits for a change, and can't know what its client
/// saw last: a change between two requests is noticed only when this is over.
const ORDER_WAIT_S: u64 = 1;
/// Looks at an order that still says nothing: far longer than any hold lives.
const LOOKS_MAX: usize = 90;
/// How late the late are, at most, once their time is over.
const LATE_MS_MAX: u64 = 700;

/// A buyer with its seats.
struct Holder {
    token: Arc<str>,
    hold_id: String,
    expires_at: jiff::Timestamp,
    claim: ClaimNo,
}

/// How an attempt to pay ended.
enum Attempt {
    Sold,
    /// Nothing was paid; the seats are still held.
    Failed,
    /// The seats are gone, or the buyer is.
    Over,
}

/// A buyer comes, looks, and buys, or doesn't. Those who make others wait go on by themselves.
pub(super) async fn visit(
    crowd: &Arc<Crowd>,
    client: &mut Client,
    chance: &mut StdRng,
) -> anyhow::Result<()> {
    let Some((holder, character)) = hold(crowd, client, chance).await? else {
        return Ok(());
    };
    match character {
        Character::Vanishes => {
            crowd.measures.count(Counted::Vanished);
            Ok(())
        }
        Character::PaysLate | Character::IgnoresBank | Character::AnswersBankLate => {
            let (shared, mut own) = (Arc::clone(crowd), StdRng::from_rng(chance));
            crowd.later(async move {
                let mut client = Client::new(shared.shop);
                if character == Character::PaysLate {
                    wait_past(holder.expires_at, &mut own).await;
                }
                pay(&shared, &mut client, &holder, character, &mut own).await
            });
            Ok(())
        }
        _ => pay(crowd, client, &holder, character, chance).await,
    }
}

/// Waits until an instant that the server promised is over, and a little.
async fn wait_past(instant: jiff::Timestamp, chance: &mut StdRng) {
    let left = instant.duration_since(jiff::Timestamp::now());
    let left = Duration::try_from(left).unwrap_or_default();
    tokio::time::sleep(left + Duration::from_millis(chance.random_range(1..LATE_MS_MAX))).await;
}

/// Chooses until seats are held; `None` when there is nothing left to come for.
async fn hold(
    crowd: &Arc<Crowd>,
    client: &mut Client,
    chance: &mut StdRng,
) -> anyhow::Result<Option<(Holder, Character)>> {
    let session = client.call(&Ask::post("/v1/sessions")).await?.expect(StatusCode::CREATED)?;
    let token: Arc<str> = session.json::<SessionSeen>()?.session_token.into();
    crowd.measures.count(Counted::Sessions);
    if chance.random_bool(0.02) {
        // A buyer's own look at the map; the rest of the crowd shares one.
        let map = client.call(&Ask::get(format!("{}/seats", crowd.event))).await?.expect(StatusCode::OK)?;
        crowd.measures.time(Timed::SeatMap, map.took);
        map.json::<SeatsSeen>()?;
    }
    let wish = Wish::draw(chance);
    let mut map = crowd.map.subscribe();
    loop {
        if map.borrow_and_update().is_over {
            return Ok(None);
        }
        let seats = crowd.with_house(|house| house.choose(wish, chance));
        if seats.is_empty() {
            // Everything is held or sold: wait for what comes back.
            map.changed().await.context("nobody looks at the map any more")?;
            continue;
        }
        let names: Vec<String> = crowd
            .with_house(|house| seats.iter().map(|seat| house.seat_id(*seat).to_owned()).collect::<Vec<_>>());
        let ask = Ask::post(format!("{}/holds", crowd.event)).token(&token).new_key();
        // Where there was no room a moment ago there may be a place by now; the next buyer will see.
        let places = match crowd.is_pitch_full.swap(false, Ordering::Relaxed) {
            true => 0,
            false => wish.places,
        };
        let ask = ask.json(&match places {
            0 => json!({ "seats": names }),
            _ => json!({ "seats": names, "ga": [{ "ga_area": PITCH, "quantity": places }] }),
        });
        let answer = send(crowd, client, Manner::draw(chance), &ask, chance).await?;
        crowd.measures.time(Timed::Hold, answer.took);
        if answer.status == StatusCode::CREATED {
            crowd.measures.count(Counted::Holds);
            let held: HoldSeen = answer.json()?;
            let same = held.seats.iter().map(|seat| &seat.seat_id).eq(&names);
            if !same || settle::places(&held.ga) != places || held.status != "ACTIVE" {
                crowd.measures.find(format!("{}: asked for {names:?}, held {answer}", held.hold_id));
            }
            let expires_at = held.expires_at.parse().context("a hold's end can't be read")?;
            let claim = crowd.claims.add(Claim {
                token: Arc::clone(&token),
                hold_id: held.hold_id.clone(),
                seats,
                places,
                total_minor: held.total_minor,
                order_id: None,
                told: Told::Open,
            });
            let character = Character::draw(crowd.is_nearly_over(), chance);
            return Ok(Some((Holder { token, hold_id: held.hold_id, expires_at, claim }, character)));
        }
        let problem: ProblemSeen = answer.json()?;
        crowd.measures.refused(&problem.code);
        match problem.code.as_str() {
            "seat-unavailable" => {}
            "not-enough-available" if places > 0 => crowd.is_pitch_full.store(true, Ordering::Relaxed),
            _ => bail!("a hold was refused: {answer}"),
        }
        crowd.with_house(|house| {
            for seat in &problem.seats {
                house.ordinal(seat).into_iter().for_each(|ordinal| house.doubt(ordinal));
            }
        });
    }
}

/// Tries the buyer's cards, one after the other.
async fn pay(
    crowd: &Arc<Crowd>,
    client: &mut Client,
    holder: &Holder,
    character: Character,
    chance: &mut StdRng,
) -> anyhow::Result<()> {
    for card in character.cards(chance) {
        let ask = Ask::post(format!("/v1/holds/{}/checkout", holder.hold_id));
        let ask = ask.token(&holder.token).new_key().json(&json!({
            "payment_method_token": card,
            "return_url": "https://tickets.example/done",
        }));
        let answer = send(crowd, client, Manner::draw(chance), &ask, chance).await?;
        crowd.measures.time(Timed::Checkout, answer.took);
        if answer.status != StatusCode::ACCEPTED {
            let problem: ProblemSeen = answer.json()?;
            crowd.measures.refused(&problem.code);
            return match problem.code.as_str() {
                // After a decline there is no second grace; a slow one leaves no time for another card.
                "hold-expired" | "too-little-time" => Ok(()),
                _ => bail!("a checkout was refused: {answer}"),
            };
        }
        crowd.measures.count(Counted::Checkouts);
        let order_id = answer.json::<BegunSeen>()?.order_id;
        if let Some(before) = crowd.claims.ordered(holder.claim, &order_id) {
            let hold = &holder.hold_id;
            crowd.measures.find(format!("{hold}: a second order {order_id} after {before}"));
        }
        if character == Character::PaysLate {
            let hold = &holder.hold_id;
            crowd.measures.find(format!("{hold}: a payment was begun after {}", holder.expires_at));
        }
        match attempt(crowd, client, holder, &order_id, character, chance).await? {
            Attempt::Sold => {
                crowd.claims.told(holder.claim, Told::Confirmed);
                return Ok(());
            }
            Attempt::Over => return Ok(()),
            Attempt::Failed => crowd.measures.count(Counted::Declines),
        }
    }
    match character {
        Character::GivesUp => Ok(()),
        _ => give_back(crowd, client, holder).await,
    }
}

/// Follows an order until its attempt has ended.
async fn attempt(
    crowd: &Arc<Crowd>,
    client: &mut Client,
    holder: &Holder,
    order_id: &str,
    character: Character,
    chance: &mut StdRng,
) -> anyhow::Result<Attempt> {
    let path = format!("/v1/orders/{order_id}");
    let look = Ask::get(path.clone()).token(&holder.token);
    let wait = Ask::get(format!("{path}?wait_s={ORDER_WAIT_S}")).token(&holder.token);
    let mut has_acted = false;
    for _ in 0..LOOKS_MAX {
        let order: OrderSeen = client.call(&wait).await?.expect(StatusCode::OK)?.json()?;
        match (order.order_status.as_str(), order.payment_status.as_str()) {
            ("CONFIRMED", _) => {
                if chance.random_bool(0.25) {
                    let page = client.call(&look).await?.expect(StatusCode::OK)?;
                    crowd.measures.time(Timed::Order, page.took);
                }
                return Ok(Attempt::Sold);
            }
            ("EXPIRED" | "CANCELLED", _) => {
                crowd.claims.told(holder.claim, Told::Over);
                return Ok(Attempt::Over);
            }
            // The money that was set aside in the wrong amount has gone back: no better than a decline.
            (_, "DECLINED" | "VOIDED") => return Ok(Attempt::Failed),
            (_, "REQUIRES_ACTION") if !has_acted => {
                has_acted = true;
                crowd.measures.count(Counted::Authentications);
                let action = order.next_action.context("an order requires an action and names none")?;
                if character == Character::IgnoresBank {
                    return Ok(Attempt::Over);
                }
                if character == Character::AnswersBankLate {
                    wait_past(holder.expires_at + PAYMENT_GRACE, chance).await;
                }
                answer_bank(crowd, &action.url, character).await?;
            }
            _ => {}
        }
    }
    bail!("{order_id} has not ended after {LOOKS_MAX} looks")
}

/// Answers the bank's questions, where the order says they are asked.
async fn answer_bank(crowd: &Arc<Crowd>, url: &str, character: Character) -> anyhow::Result<()> {
    let base = format!("http://{}", crowd.provider);
    let path = url.strip_prefix(&base).with_context(|| format!("a buyer was sent to {url}"))?;
    let result = if character == Character::FailsAuthentication { "failure" } else { "success" };
    let ask = Ask::post(path).json(&json!({ "result": result }));
    let answer = Client::new(crowd.provider).call(&ask).await?;
    // Whoever is late may find the payment called off.
    match answer.status == StatusCode::OK || character == Character::AnswersBankLate {
        true => Ok(()),
        false => bail!("the bank did not take an answer: {answer}"),
    }
}

/// Gives seats back, twice, which is as good as once.
async fn give_back(crowd: &Arc<Crowd>, client: &mut Client, holder: &Holder) -> anyhow::Result<()> {
    let ask = Ask::new(Method::DELETE, format!("/v1/holds/{}", holder.hold_id)).token(&holder.token);
    for _ in 0..2 {
        client.call(&ask).await?.expect(StatusCode::NO_CONTENT)?;
    }
    crowd.claims.told(holder.claim, Told::Over);
    crowd.measures.count(Counted::Releases);
    Ok(())
}
