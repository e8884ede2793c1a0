//! The decisions, a file for each stretch of the way: the sale's frame, holds, checkout, the provider's answers,
//! callbacks and cases. [`books`] holds the steps they share.

mod access;
mod answer;
mod books;
mod callback;
mod case;
mod checkout;
mod ga;
pub(crate) mod hold;
pub(crate) mod observe;
mod places;
mod reconcile;
mod refund;
mod sale;
mod ticket;

use crate::command::{Command, Outcome, Request};
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

/// Decides one command whose key, if any, is new.
pub(crate) fn decide(state: &mut Snapshot, request: &Request, now: Timestamp) -> Outcome {
    let seed = &mut request.seed.clone();
    match &request.command {
        Command::CreateEvent(event) => sale::create_event(state, event),
        Command::ReplaceManifest { event, manifest } => sale::replace_manifest(state, *event, manifest),
        Command::SetPrices { event, manifest_version, levels } => {
            sale::set_prices(state, *event, *manifest_version, levels)
        }
        Command::SetOnSale { event, status, actor } => sale::set_on_sale(state, *event, *status, actor),
        Command::SetSeatsStatus { event, manifest_version, seats, not_for_sale, actor } => {
            sale::set_seats_status(state, *event, *manifest_version, seats, *not_for_sale, actor)
        }
        Command::MakeAllocation { event, name, actor } => {
            access::make_allocation(state, *event, name, actor, now)
        }
        Command::SetSeatsAside { event, manifest_version, seats, allocation, actor } => {
            access::set_seats_aside(state, *event, *manifest_version, seats, *allocation, actor)
        }
        Command::SetAccessCode { event, code, actor } => access::set_access_code(state, *event, code, actor),
        Command::AddBucket { event, area, allocation, actor } => {
            ga::add_bucket(state, *event, *area, *allocation, actor)
        }
        Command::SetCapacity { event, area, capacity, actor } => {
            ga::set_capacity(state, *event, *area, *capacity, actor)
        }
        Command::BeginTransfer { event, area, from, to, quantity, actor } => {
            ga::begin_transfer(state, *event, *area, *from, *to, *quantity, actor, now, seed)
        }
        Command::EndTransfer { transfer, arrives } => ga::end_transfer(state, *transfer, *arrives, now),
        Command::PlaceHold { event, manifest_version, account, wish, code } => {
            let wished = hold::Wished { account, wish, code: code.as_ref() };
            hold::place_hold(state, *event, *manifest_version, wished, now, seed)
        }
        Command::ReleaseHold { hold, account } => {
            hold::release_hold(state, *hold, account.as_ref(), now, seed)
        }
        Command::ExpireHold { hold } => hold::expire_hold(state, *hold, now, seed),
        Command::Checkout { hold, account, payment_method_token, email, return_url } => {
            let card = checkout::Card {
                payment_method_token,
                email: email.as_deref(),
                return_url: return_url.as_deref(),
            };
            checkout::checkout(state, *hold, account, card, now, seed)
        }
        Command::RecordReference { operation, reference } => {
            checkout::record_reference(state, *operation, reference, now)
        }
        Command::RecordAnswer { operation, answer } => {
            answer::record_answer(state, *operation, answer, now, seed)
        }
        Command::JudgeCallback { callback, observation, relevant, .. } => {
            callback::judge(state, callback, observation.as_ref(), *relevant, now, seed)
        }
        Command::BeginRefund { order, part, resell, reason, actor } => {
            refund::begin(state, *order, part, *resell, reason, actor, now, seed)
        }
        Command::IssueTickets { order } => ticket::issue(state, *order, now, seed),
        Command::ReissueTicket { ticket, generation, actor } => {
            ticket::reissue(state, *ticket, *generation, actor)
        }
        Command::ScanTicket(showing) => ticket::scan(state, showing, now),
        Command::Reconcile { attempt, observation, as_of } => {
            reconcile::reconcile(state, *attempt, observation.as_ref(), *as_of, now, seed)
        }
        Command::OpenCase { about, kind, evidence } => {
            reconcile::open_case(state, about, *kind, evidence, now, seed)
        }
        Command::SettleCase { case, proof } => reconcile::settle_case(state, *case, proof, now),
        Command::ResolveCase { case, action, note, actor } => {
            case::resolve(state, *case, *action, note, actor, now, seed)
        }
    }
}
