//! The arena: where its data lives, and how it comes on sale.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use hyper::{Method, StatusCode};
use onsale_core::manifest::{Manifest, ManifestSeat};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bowl;

use super::client::{Answer, Ask, Client};
use super::crowd::{HOLD_TTL_S, PAYMENT_GRACE};
use super::wire::{KeySeen, ManifestSeatSeen, ManifestSeen};

/// Prices from the pitch outwards, in minor units.
const PRICES: [i64; 4] = [18_900, 12_900, 8_900, 4_900];
/// The standing area in the middle, and what a place on it costs.
pub(super) const PITCH: &str = "pitch";
const PITCH_PRICE: i64 = 3_900;
/// So many seats for each place on the pitch.
const SEATS_PER_PLACE: u32 = 10;
const PITCH_BUCKETS: u32 = 4;

/// How many people stand on the pitch of an arena of so many seats.
pub(super) fn pitch_capacity(seats: usize) -> u32 {
    (seats as u32 / SEATS_PER_PLACE).max(PITCH_BUCKETS)
}

/// The file whose presence says that a folder is in use.
const DATABASE: &str = "onsale.db";
const KEY_FILE: &str = "operator.key";
const GIVEN_KEY: &str = "ONSALE_OPERATOR_KEY";

/// Where the demo's data lives; gone with this, unless the folder was asked for.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    _temporary: Option<TempDir>,
}

impl Folder {
    /// A new folder, or one that was asked for and has no database.
    pub(super) fn make(wanted: Option<PathBuf>) -> anyhow::Result<Folder> {
        match wanted {
            Some(path) => {
                ensure!(
                    !path.join(DATABASE).exists(),
                    "{} has a database already; the demo wants a new one",
                    path.display()
                );
                std::fs::create_dir_all(&path)
                    .with_context(|| format!("failed to make {}", path.display()))?;
                Ok(Folder { path, _temporary: None })
            }
            None => {
                let temporary = tempfile::Builder::new()
                    .prefix("onsale-demo-")
                    .tempdir()
                    .context("failed to make a temporary folder")?;
                Ok(Folder { path: temporary.path().to_owned(), _temporary: Some(temporary) })
            }
        }
    }
}

/// The operator's key of a server that has just been started for the first time.
pub(super) fn operator_key(folder: &Path) -> anyhow::Result<Arc<str>> {
    if let Some(key) = given_key() {
        return Ok(key.into());
    }
    let path = folder.join(KEY_FILE);
    let key = std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(key.trim().into())
}

/// Where a person finds it.
pub(super) fn where_key_is(folder: &Path) -> String {
    match given_key() {
        Some(_) => GIVEN_KEY.to_owned(),
        None => folder.join(KEY_FILE).display().to_string(),
    }
}

/// A server that was given a key writes no file.
fn given_key() -> Option<String> {
    std::env::var(GIVEN_KEY).ok().filter(|key| !key.is_empty())
}

/// An operator at work.
pub(super) struct Operator {
    client: Client,
    key: Arc<str>,
}

#[derive(Deserialize)]
struct EventSeen {
    event_id: String,
}

impl Operator {
    pub(super) fn new(server: SocketAddr, key: Arc<str>) -> Operator {
        Operator { client: Client::new(server), key }
    }

    pub(super) async fn get<T: serde::de::DeserializeOwned>(&mut self, path: &str) -> anyhow::Result<T> {
        let ask = Ask::get(path).token(&self.key);
        self.client.call(&ask).await?.expect(StatusCode::OK)?.json()
    }

    /// Something to be asked for under the operator's key.
    pub(super) fn ask(&self, path: &str) -> Ask {
        Ask::post(path).token(&self.key)
    }

    pub(super) async fn call(&mut self, ask: &Ask) -> anyhow::Result<Answer> {
        self.client.call(ask).await
    }

    pub(super) async fn post<T: serde::de::DeserializeOwned>(
        &mut self,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<T> {
        let ask = self.ask(path).json(body);
        self.client.call(&ask).await?.expect(StatusCode::OK)?.json()
    }

    /// A key for the gates.
    pub(super) async fn gate_key(&mut self) -> anyhow::Result<Arc<str>> {
        let ask = self.ask("/v1/keys").json(&json!({ "role": "gate", "name": "gates" }));
        let made = self.client.call(&ask).await?.expect(StatusCode::CREATED)?;
        Ok(made.json::<KeySeen>()?.secret.into())
    }

    async fn put(&mut self, path: String, body: String) -> anyhow::Result<()> {
        let ask = Ask::new(Method::PUT, path).token(&self.key).body(body);
        self.client.call(&ask).await?.expect(StatusCode::OK).map(drop)
    }

    /// Makes an arena of so many seats, and prices it; the event's path. Nobody can buy yet.
    pub(super) async fn build(&mut self, seats: usize, seed: u64) -> anyhow::Result<String> {
        let bowl = bowl::generate(seats, seed);
        let event = json!({
            "name": format!("Demo night, {seats} seats"),
            "currency": "EUR",
            "starts_at": "2030-06-01T19:00:00Z",
            "timezone": "Europe/Berlin",
            "policy": { "hold_ttl_s": HOLD_TTL_S, "payment_grace_s": PAYMENT_GRACE.as_secs() },
        });
        let ask = Ask::post("/v1/events").token(&self.key).json(&event);
        let made = self.client.call(&ask).await?.expect(StatusCode::CREATED)?;
        let event = format!("/v1/events/{}", made.json::<EventSeen>()?.event_id);
        self.put(format!("{event}/manifest"), plan(&bowl).to_string()).await?;
        let prices: Vec<_> = bowl
            .price_levels
            .iter()
            .map(|level| level.name.as_str())
            .zip(PRICES)
            .chain([(PITCH, PITCH_PRICE)])
            .map(|(level, price)| json!({ "price_level": level, "amount_minor": price }))
            .collect();
        self.put(format!("{event}/prices"), json!({ "price_levels": prices }).to_string()).await?;
        Ok(event)
    }

    /// Opens the sale.
    pub(super) async fn open(&mut self, event: &str) -> anyhow::Result<()> {
        self.put(format!("{event}/on-sale"), json!({ "state": "open" }).to_string()).await
    }
}

/// The bowl with a pitch in the middle, in our own format.
fn plan(bowl: &Manifest) -> Value {
    let level = |index: u16| &bowl.price_levels[index as usize].name;
    let seat = |seat: &ManifestSeat| {
        json!({
            "seat_id": seat.seat_id, "seat": seat.seat, "price_level": level(seat.price_level), "x": seat.x, "y": seat.y,
            "accessible": seat.accessible, "companion_of": seat.companion_of, "restricted_view": seat.restricted_view,
        })
    };
    let row = |row: &[ManifestSeat]| json!({ "row": row[0].row, "seats": row.iter().map(seat).collect::<Vec<_>>() });
    let section = |seats: &[ManifestSeat]| {
        let rows: Vec<Value> = seats.chunk_by(|a, b| a.row == b.row).map(row).collect();
        json!({ "name": bowl.sections[seats[0].section as usize], "rows": rows })
    };
    let sections: Vec<Value> = bowl.seats.chunk_by(|a, b| a.section == b.section).map(section).collect();
    let levels: Vec<Value> = bowl
        .price_levels
        .iter()
        .map(|level| json!({ "name": level.name, "color": level.color }))
        .chain([json!({ "name": PITCH })])
        .collect();
    let capacity = pitch_capacity(bowl.seats.len());
    let pitch =
        json!({ "ga_area": PITCH, "capacity": capacity, "price_level": PITCH, "buckets": PITCH_BUCKETS });
    json!({ "price_levels": levels, "sections": sections, "ga_areas": [pitch] })
}

/// The seats as buyers see them.
pub(super) async fn seats(shop: SocketAddr, event: &str) -> anyhow::Result<Vec<ManifestSeatSeen>> {
    let answer = Client::new(shop).call(&Ask::get(format!("{event}/manifest"))).await?;
    Ok(answer.expect(StatusCode::OK)?.json::<ManifestSeen>()?.seats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_use_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let wanted = parent.path().join("new");
        assert!(Folder::make(Some(wanted.clone())).is_ok());
        assert!(Folder::make(Some(wanted.clone())).is_ok(), "it has no database yet");
        std::fs::write(wanted.join(DATABASE), "").unwrap();
        assert!(Folder::make(Some(wanted)).is_err());
        let temporary = Folder::make(None).unwrap();
        let path = temporary.path.clone();
        assert!(path.exists());
        drop(temporary);
        assert!(!path.exists());
    }
}
