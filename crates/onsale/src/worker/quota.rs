//! Lets capacity arrive that is on its way from one bucket to another.

use std::sync::Arc;

use onsale_core::command::Command;

use crate::app::App;
use crate::desk::HomeNo;

/// Transfers that arrive in a pass.
const TOGETHER_MAX: u32 = 200;

pub(crate) async fn pass(app: Arc<App>, home: HomeNo) -> anyhow::Result<()> {
    loop {
        let on_their_way = app.read_at(home, |reader| reader.transfers_in_flight(TOGETHER_MAX)).await?;
        let is_last = on_their_way.len() < TOGETHER_MAX as usize;
        for transfer in on_their_way {
            app.record(Command::EndTransfer { transfer, arrives: true }).await?;
        }
        if is_last {
            return Ok(());
        }
    }
}
