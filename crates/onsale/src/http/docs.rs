//! The OpenAPI document, and pages to browse it that load nothing from outside.

use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, openapi};

/// How the pages behave. Left to themselves they would show a badge that a validator on the internet makes.
pub(super) fn page_settings() -> utoipa_swagger_ui::Config<'static> {
    utoipa_swagger_ui::Config::default().validator_url("none")
}

/// What stands above the routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "onsale",
        description = "A self-hosted ticket on-sale system. Errors are application/problem+json; each code has a page under /problems.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    modifiers(&Security),
    security(("bearer" = []))
)]
pub(crate) struct Document;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key (osk_…) or a session token (ost_…)."))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
}
