//! The crowd: so many buyers at once, one after the other at each place, until everything is sold.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::buyer::visit;
use super::claims::Claims;
use super::client::Client;
use super::follow::follow;
use super::house::{Counts, House};
use super::measures::{Measures, UNPOISONED};

/// How long the demo's holds live: long enough to pay, short enough that those who walk away don't hold up the end.
pub(super) const HOLD_TTL_S: u32 = 7;
/// What beginning to pay adds.
pub(super) const PAYMENT_GRACE: Duration = Duration::from_secs(4);
/// Whoever comes when fewer seats than this share are left means it.
const LAST_SHARE: f64 = 0.5;
/// How long the last buyers may take to go once everything is sold.
const LEAVING: Duration = Duration::from_secs(60);

/// What the map last said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MapSeen {
    pub(super) counts: Counts,
    /// Everything is sold, or the time is up.
    pub(super) is_over: bool,
}

/// What all buyers share.
pub(super) struct Crowd {
    /// The buyers' listener.
    pub(super) shop: SocketAddr,
    /// Where the bank asks its questions.
    pub(super) provider: SocketAddr,
    /// The event's path on the buyers' listener.
    pub(super) event: String,
    house: Mutex<House>,
    pub(super) map: watch::Sender<MapSeen>,
    pub(super) claims: Claims,
    pub(super) measures: Measures,
    /// Set by whoever was told that there is no room left on the pitch.
    pub(super) is_pitch_full: AtomicBool,
    /// Those who are waited for by nobody but the books.
    later: Mutex<JoinSet<()>>,
}

impl Crowd {
    pub(super) fn new(shop: SocketAddr, provider: SocketAddr, event: String, house: House) -> Arc<Crowd> {
        Arc::new(Crowd {
            shop,
            provider,
            event,
            house: Mutex::new(house),
            map: watch::Sender::new(MapSeen::default()),
            claims: Claims::default(),
            measures: Measures::new(),
            is_pitch_full: AtomicBool::new(false),
            later: Mutex::default(),
        })
    }

    pub(super) fn with_house<R>(&self, look: impl FnOnce(&mut House) -> R) -> R {
        look(&mut self.house.lock().expect(UNPOISONED))
    }

    pub(super) fn is_nearly_over(&self) -> bool {
        self.with_house(|house| (house.counts().available as f64) < house.len() as f64 * LAST_SHARE)
    }

    /// Goes on with a buyer that takes its time, without keeping its place from the next.
    pub(super) fn later(self: &Arc<Self>, work: impl Future<Output = anyhow::Result<()>> + Send + 'static) {
        let crowd = Arc::clone(self);
        self.later.lock().expect(UNPOISONED).spawn(async move {
            if let Err(error) = work.await {
                crowd.measures.find(format!("a buyer could not go on: {error:#}"));
            }
        });
    }
}

/// Lets buyers in until everything is sold; how long that took, or `None` when the time was up first.
pub(super) async fn sell_out(
    crowd: &Arc<Crowd>,
    places: usize,
    seed: u64,
    limit: Duration,
) -> Option<Duration> {
    let begun = Instant::now();
    let mut buyers = JoinSet::new();
    for place in 0..places {
        let crowd = Arc::clone(crowd);
        buyers.spawn(async move {
            let mut chance = StdRng::seed_from_u64(seed.wrapping_add(place as u64));
            let mut client = Client::new(crowd.shop);
            while !crowd.map.borrow().is_over {
                if let Err(error) = visit(&crowd, &mut client, &mut chance).await {
                    crowd.measures.find(format!("a buyer could not go on: {error:#}"));
                    return;
                }
            }
        });
    }
    let nobody_left = async { while buyers.join_next().await.is_some() {} };
    let took = tokio::select! {
        followed = follow(crowd) => match followed {
            Ok(()) => Some(begun.elapsed()),
            Err(error) => {
                crowd.measures.find(format!("the seat map could not be followed: {error:#}"));
                None
            }
        },
        // Each has met with something that was not as promised.
        () = nobody_left => None,
        () = tokio::time::sleep(limit) => None,
    };
    crowd.map.send_modify(|seen| seen.is_over = true);
    let leaving = async {
        while buyers.join_next().await.is_some() {}
        let mut later = std::mem::take(&mut *crowd.later.lock().expect(UNPOISONED));
        while later.join_next().await.is_some() {}
    };
    if took.is_some() && tokio::time::timeout(LEAVING, leaving).await.is_err() {
        crowd.measures.find(format!("buyers are still busy {LEAVING:?} after everything was sold"));
    }
    took
}
