//! Webhook endpoints and their deliveries.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewEndpointJson {
    /// Where messages go: public, and `https`.
    pub(crate) url: String,
    /// Which types of messages; see docs/webhooks.md.
    pub(crate) types: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndpointJson {
    pub(crate) endpoint_id: String,
    pub(crate) url: String,
    pub(crate) types: Vec<String>,
    /// `ENABLED` or `DISABLED`.
    pub(crate) status: &'static str,
    pub(crate) created_at: String,
    pub(crate) enabled_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disabled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disabled_reason: Option<String>,
    /// Messages that wait to be delivered.
    pub(crate) undelivered: u64,
    /// When the oldest of what they tell happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oldest_undelivered_at: Option<String>,
    /// Shown this once: when the endpoint is made, and when the secret is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
    /// Until then messages are signed with the secret before, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) both_secrets_until: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndpointsJson {
    pub(crate) endpoints: Vec<EndpointJson>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayJson {
    /// Everything that happened since then and was delivered.
    pub(crate) since: Option<String>,
    /// One message.
    pub(crate) webhook_id: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplayedJson {
    /// Messages that will be sent again, under their old ids.
    pub(crate) replayed: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryJson {
    pub(crate) webhook_id: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// When it happened.
    pub(crate) timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) order_id: Option<String>,
    /// `PENDING`, `DELIVERED` or `FAILED`.
    pub(crate) status: &'static str,
    pub(crate) tries: u32,
    /// Not before this is it tried again; it also waits for what is before it of the same order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_try_at: Option<String>,
    pub(crate) updated_at: String,
    /// Status of the last answer; none where none came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveriesJson {
    pub(crate) deliveries: Vec<DeliveryJson>,
}
