//! Standing areas, allocations, access codes and refunds, as operators see and set them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AreasJson {
    pub(crate) areas: Vec<AreaJson>,
    /// What has left a bucket and not arrived yet.
    pub(crate) in_flight: Vec<TransferJson>,
    /// Places held and sold in all areas, and how many there may be.
    pub(crate) in_use: u32,
    pub(crate) ga_max: Option<u32>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AreaJson {
    pub(crate) ga_area: String,
    /// The sum of its buckets and of what is in flight between them.
    pub(crate) capacity: u64,
    pub(crate) buckets: Vec<BucketJson>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BucketJson {
    pub(crate) bucket: u16,
    pub(crate) capacity: u32,
    pub(crate) held: u32,
    pub(crate) sold: u32,
    /// The allocation it is set aside for.
    pub(crate) allocation: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CapacityJson {
    pub(crate) ga_area: String,
    /// 1 to 10,000,000.
    pub(crate) capacity: u32,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewBucketJson {
    pub(crate) ga_area: String,
    /// The allocation its places are for; everyone's when left out.
    pub(crate) allocation: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTransferJson {
    pub(crate) ga_area: String,
    pub(crate) from_bucket: u16,
    pub(crate) to_bucket: u16,
    /// How many places, 1 or more.
    pub(crate) quantity: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TransferJson {
    pub(crate) transfer_id: String,
    pub(crate) ga_area: String,
    pub(crate) from_bucket: u16,
    pub(crate) to_bucket: u16,
    pub(crate) quantity: u32,
    /// `IN_FLIGHT`; one that has arrived is in its bucket.
    pub(crate) status: &'static str,
    pub(crate) created_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TransferBegunJson {
    pub(crate) transfer_id: String,
    pub(crate) status: &'static str,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAllocationJson {
    /// 1–200 characters, unique within the event.
    pub(crate) name: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AllocationJson {
    pub(crate) name: String,
    pub(crate) created_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AllocationsJson {
    pub(crate) allocations: Vec<AllocationJson>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeatsAsideJson {
    pub(crate) seats: Vec<String>,
    /// The allocation they are set aside for; `null` puts them on sale to all.
    pub(crate) allocation: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAccessCodeJson {
    /// 4–64 letters, digits and hyphens; capital and small letters are the same.
    pub(crate) code: String,
    /// The allocation it opens.
    pub(crate) allocation: Option<String>,
    /// Whether it lets its holders buy before the sale begins.
    pub(crate) presale: Option<bool>,
    /// Most tickets that may be held and bought with it.
    pub(crate) tickets_max: u32,
    pub(crate) valid_from: Option<String>,
    pub(crate) valid_until: Option<String>,
    /// Withdraws it: what was bought with it stays.
    pub(crate) revoked: Option<bool>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccessCodeJson {
    pub(crate) code: String,
    pub(crate) allocation: Option<String>,
    pub(crate) presale: bool,
    pub(crate) tickets_max: u32,
    /// Held and bought with it now.
    pub(crate) tickets_in_use: u32,
    pub(crate) valid_from: Option<String>,
    pub(crate) valid_until: Option<String>,
    pub(crate) revoked_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccessCodesJson {
    pub(crate) access_codes: Vec<AccessCodeJson>,
    /// Ask for those after this one, when there are more.
    pub(crate) next: Option<String>,
}

/// What to give back. Without seats, places and amount: all that is left of the order.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRefundJson {
    /// Why; kept with the acting key.
    pub(crate) reason: String,
    /// Whether the seats and places are for sale again once the money is back.
    pub(crate) resell: bool,
    /// Some seats, with what they cost.
    pub(crate) seats: Option<Vec<String>>,
    /// Some standing places, with what they cost.
    pub(crate) ga: Option<Vec<super::sale::WishedPlacesJson>>,
    /// Money alone: the buyer keeps seats and places.
    pub(crate) amount_minor: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefundBegunJson {
    pub(crate) operation_id: String,
    /// `PENDING`: nothing is refunded before the provider has said so.
    pub(crate) status: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefundJson {
    pub(crate) operation_id: String,
    /// `PENDING`, `UNKNOWN`, `SUCCEEDED` or `FAILED`.
    pub(crate) status: &'static str,
    pub(crate) amount_minor: i64,
    pub(crate) currency: String,
    pub(crate) reason: String,
    pub(crate) resell: bool,
    pub(crate) seats: Vec<String>,
    pub(crate) ga: Vec<ReturnedPlacesJson>,
    pub(crate) actor: String,
    pub(crate) created_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReturnedPlacesJson {
    pub(crate) ga_area: String,
    pub(crate) quantity: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefundsJson {
    pub(crate) refunds: Vec<RefundJson>,
}
