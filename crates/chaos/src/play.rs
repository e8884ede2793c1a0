//! One fault after another, each in the middle of a sale of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;

use crate::faults::{Damage, Fault, Lasts, Scene};
use crate::report::Line;
use crate::sale::{Crowd, Event, Ledger};
use crate::verdict::Judge;
use crate::wait::let_last;

/// Holds that are acknowledged before a fault begins, by each process, and again after it has healed.
const WARM: usize = 30;
/// Holds that say that the sale goes on in spite of a fault.
const GOES_ON: usize = 20;
/// A sale that stands still for longer than this when it could go on is not highly available.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets a fault happen in the middle of a sale, and judges what came of it. An error is one of the cluster or of this
/// program, or a product that does not come back.
pub(crate) async fn play(
    fault: &'static Fault,
    scene: &mut Scene,
    judge: &mut Judge,
    logs: &Path,
    seed: u64,
) -> anyhow::Result<Line> {
    let ledger = Ledger::open(&logs.join(format!("ledger-{}.txt", fault.name)))?;
    let event = Event::open(&scene.shop.processes[0].operator, fault.name).await?;
    ledger.remark("the event is open");
    let crowd = Crowd::enter(&scene.shop, &event, &ledger, seed);
    crowd.served(Instant::now(), WARM, true, PATIENCE).await.context("before the fault")?;

    let begun = Instant::now();
    ledger.remark("the fault begins");
    let damage = fault.begin(scene).await.context("the fault did not take effect")?;
    let took_effect = Instant::now();
    ledger.remark("it has taken effect");
    // A sale that stands still may still lose nothing: that is judged too.
    let stood_still = lasts(fault, &crowd).await.err();
    ledger.remark("it is healed");
    let healing = Instant::now();
    fault.heal(scene, &damage).await.context("it did not heal")?;
    let healed = Instant::now();
    ledger.remark("it has healed");
    crowd.served(healed, WARM, true, PATIENCE).await.context("after the fault was healed")?;
    let closed = Instant::now();
    crowd.leave().await?;
    ledger.remark("the doors are closed");

    let mut verdict = judge.judge(&mut scene.shop, &event, &ledger).await?;
    verdict.wrong.extend(stood_still.map(|error| format!("{error:#}")));
    for found in [&verdict.lost, &verdict.twice, &verdict.wrong].into_iter().flatten() {
        eprintln!("{}: {found}", fault.name);
    }
    if let Damage { note: Some(note), .. } = damage {
        eprintln!("{}: {note}", fault.name);
    }
    let (before, after) = ledger.holds_around(begun);
    Ok(Line {
        fault: fault.name,
        effect: took_effect - begun,
        gap: ledger.gap(begun, closed),
        healed: healed - healing,
        before,
        after,
        verdict,
    })
}

async fn lasts(fault: &Fault, crowd: &Crowd) -> anyhow::Result<()> {
    match fault.lasts {
        Lasts::UntilServed => {
            crowd.served(Instant::now(), GOES_ON, false, PATIENCE).await.context("while the fault lasts")
        }
        Lasts::For(time) => {
            let_last(time).await;
            Ok(())
        }
        Lasts::NoTime => Ok(()),
    }
}
