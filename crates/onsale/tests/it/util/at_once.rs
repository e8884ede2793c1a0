//! Many requests at once, and what came of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Ask, Buyer, Reply};

/// Sends all of them at once.
pub(crate) async fn together(asks: Vec<Ask>) -> Vec<Reply> {
    let mut sending: JoinSet<Reply> = asks.into_iter().map(IntoFuture::into_future).collect();
    let mut replies = Vec::new();
    while let Some(reply) = sending.join_next().await {
        replies.push(reply.expect("an answer"));
    }
    replies
}

/// As many buyers at once as are given, each asking again and again; all replies.
pub(crate) async fn crowd<F>(buyers: Vec<Buyer>, rounds: usize, ask: F) -> Vec<Reply>
where
    F: Fn(&Buyer, usize) -> Ask + Send + Sync + 'static,
{
    let ask = Arc::new(ask);
    let mut crowd = JoinSet::new();
    for (number, buyer) in buyers.into_iter().enumerate() {
        let ask = Arc::clone(&ask);
        crowd.spawn(async move {
            let mut replies = Vec::new();
            for round in 0..rounds {
                replies.push(ask(&buyer, number * rounds + round).await);
            }
            replies
        });
    }
    crowd.join_all().await.into_iter().flatten().collect()
}

/// How often there was each status and code.
pub(crate) fn tally<'a>(replies: impl IntoIterator<Item = &'a Reply>) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for reply in replies {
        let code = reply.body["code"].as_str().unwrap_or("ok");
        *tally.entry(format!("{} {code}", reply.status)).or_default() += 1;
    }
    tally
}

/// The same by hand: `("409 seat-unavailable", 7)`.
pub(crate) fn counts<const N: usize>(counts: [(&str, usize); N]) -> BTreeMap<String, usize> {
    counts.into_iter().map(|(what, count)| (what.to_owned(), count)).collect()
}
