//! Many requests at once, and what came of them.

use std::collections::BTreeMap;

use tokio::task::JoinSet;

use super::{Ask, Reply};

/// Sends all of them at once.
pub(crate) async fn together(asks: Vec<Ask>) -> Vec<Reply> {
    let mut sending: JoinSet<Reply> = asks.into_iter().map(IntoFuture::into_future).collect();
    let mut replies = Vec::new();
    while let Some(reply) = sending.join_next().await {
        replies.push(reply.expect("an answer"));
    }
    replies
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
