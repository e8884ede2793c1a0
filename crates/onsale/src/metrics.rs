//! What the operator's monitoring reads (ECOSYSTEM's names: base units, no label that grows with the crowd).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onsale_store::{EndpointStatus, Named};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::app::{App, AppError};
use crate::desk::HomeNo;
use crate::reconcile::{Summary, schedule};

/// Seconds; the targets of 0.2, 0.25 and 0.3 are among them.
const LATENCY_BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 1.0, 2.5, 10.0];

/// A request by its route.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    http_request_method: &'static str,
    http_route: Arc<str>,
    http_response_status_code: u16,
}

/// Something by how it ended.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OutcomeLabel {
    outcome: &'static str,
}

/// Counters that handlers and workers raise.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Histogram, fn() -> Histogram>,
    holds: Family<OutcomeLabel, Counter>,
    callbacks: Family<OutcomeLabel, Counter>,
    payments: Family<OutcomeLabel, Counter>,
    scans: Family<OutcomeLabel, Counter>,
    reconciled: Family<OutcomeLabel, Counter>,
    webhooks: Family<OutcomeLabel, Counter>,
    gauges: Gauges,
}

/// Names with values. The home is among them where there is more than one.
type Labels = Vec<(&'static str, Arc<str>)>;

#[derive(Default)]
struct Gauges {
    queue: Family<Labels, Gauge>,
    connections: Gauge,
    backlog: Family<Labels, Gauge>,
    backlog_age: Family<Labels, Gauge<f64, AtomicU64>>,
    writer: Family<Labels, Gauge<f64, AtomicU64>>,
    home_away: Family<Labels, Gauge>,
    cases: Family<Labels, Gauge>,
    case_age: Family<Labels, Gauge<f64, AtomicU64>>,
    reconciled_age: Family<Labels, Gauge<f64, AtomicU64>>,
    webhook_endpoints: Family<Labels, Gauge>,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::default();
        let requests: Family<RequestLabels, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
        let (holds, callbacks, payments, scans, webhooks) =
            (Family::default(), Family::default(), Family::default(), Family::default(), Family::default());
        let gauges = Gauges::default();
        let reconciled: Family<OutcomeLabel, Counter> = Family::default();
        registry.register_with_unit(
            "http_server_request_duration",
            "Time from a request's header to its answer",
            Unit::Seconds,
            requests.clone(),
        );
        registry.register("onsale_hold_attempts", "Holds asked for, by outcome", holds.clone());
        registry.register("onsale_callbacks", "Callbacks of the provider, by verdict", callbacks.clone());
        registry.register(
            "onsale_payment_calls",
            "Calls to the provider, by how they ended",
            payments.clone(),
        );
        registry.register(
            "onsale_gate_scans",
            "Barcodes shown at gates, by what the gate was told",
            scans.clone(),
        );
        registry.register(
            "onsale_webhook_deliveries",
            "Messages sent to other systems, by how that ended",
            webhooks.clone(),
        );
        registry.register(
            "onsale_webhook_endpoints",
            "Other systems that are told what happens, by status",
            gauges.webhook_endpoints.clone(),
        );
        registry.register(
            "onsale_writer_queue_depth",
            "Commands waiting for the writer",
            gauges.queue.clone(),
        );
        registry.register(
            "onsale_connections_open",
            "Open connections on both listeners",
            gauges.connections.clone(),
        );
        registry.register("onsale_backlog", "What waits, by kind", gauges.backlog.clone());
        registry.register_with_unit(
            "onsale_backlog_age",
            "Age of the oldest of what waits, by kind",
            Unit::Seconds,
            gauges.backlog_age.clone(),
        );
        registry.register(
            "onsale_writer",
            "What the writer has done since the start, by figure",
            gauges.writer.clone(),
        );
        registry.register(
            "onsale_home_away",
            "Whether a home can't be used at present, by its name",
            gauges.home_away.clone(),
        );
        registry.register(
            "onsale_reconciled_payments",
            "Payments compared with the provider's books by the rounds of this process, by outcome",
            reconciled.clone(),
        );
        registry.register_with_unit(
            "onsale_reconciliation_age",
            "Time since the provider's books were last compared from end to end, by whichever process",
            Unit::Seconds,
            gauges.reconciled_age.clone(),
        );
        registry.register("onsale_cases_open", "Open cases, by kind", gauges.cases.clone());
        registry.register_with_unit(
            "onsale_case_age",
            "Age of the oldest open case, by kind",
            Unit::Seconds,
            gauges.case_age.clone(),
        );
        Metrics { registry, requests, holds, callbacks, payments, scans, reconciled, webhooks, gauges }
    }

    pub(crate) fn request(&self, method: &'static str, route: Arc<str>, status: u16, took: Duration) {
        let labels = RequestLabels {
            http_request_method: method,
            http_route: route,
            http_response_status_code: status,
        };
        self.requests.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn hold(&self, outcome: &'static str) {
        self.holds.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(crate) fn callback(&self, outcome: &'static str) {
        self.callbacks.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(crate) fn payment_call(&self, outcome: &'static str) {
        self.payments.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(crate) fn scan(&self, outcome: &'static str) {
        self.scans.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Counts what a round of comparisons found.
    pub(crate) fn reconciled(&self, found: &Summary) {
        for (outcome, count) in [
            ("agreed", found.agreed),
            ("behind", found.behind),
            ("differs", found.differs),
            ("dismissed", found.dismissed),
            ("strangers", found.strangers),
            ("overtaken", found.overtaken),
            ("unreadable", found.unreadable),
        ] {
            self.reconciled.get_or_create(&OutcomeLabel { outcome }).inc_by(count);
        }
    }

    /// Reads how old the questions are, and how long ago the books were compared.
    async fn read_questions(&self, app: &Arc<App>) -> Result<(), AppError> {
        let now = app.now();
        self.gauges.cases.clear();
        self.gauges.case_age.clear();
        self.gauges.reconciled_age.clear();
        for (home, kinds) in app.read_all(|reader| reader.open_case_kinds()).await? {
            for (kind, count, oldest) in kinds {
                let mut labels: Labels = vec![("kind", kind.into())];
                labels.extend(app.has_homes().then(|| ("home", Arc::clone(app.name(home)))));
                self.gauges.cases.get_or_create(&labels).set(count as i64);
                let age_s = now.since_ms(oldest).max(0) as f64 / 1_000.0;
                self.gauges.case_age.get_or_create(&labels).set(age_s);
            }
        }
        if let Ok((_, Some(progress))) = schedule::progress(app).await
            && let Some(last) = progress.last
        {
            let age_s = (now.millis() - last.at_ms).max(0) as f64 / 1_000.0;
            self.gauges.reconciled_age.get_or_create(&Labels::new()).set(age_s);
        }
        Ok(())
    }

    pub(crate) fn webhook(&self, outcome: &'static str) {
        self.webhooks.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// The text a scrape gets. Reads the backlog from the databases that can be read.
    pub(crate) async fn render(&self, app: &Arc<App>) -> Result<String, AppError> {
        let now = app.now();
        let named = |home: HomeNo, name: &'static str, value: &'static str| {
            let mut labels: Labels = vec![(name, value.into())];
            labels.extend(app.has_homes().then(|| ("home", Arc::clone(app.name(home)))));
            labels
        };
        // What can't be read is not shown, rather than shown as it was.
        self.gauges.backlog.clear();
        self.gauges.backlog_age.clear();
        for (home, backlog) in app.read_all(move |reader| reader.backlog(now)).await? {
            for (kind, count, oldest) in backlog {
                let labels = named(home, "kind", kind);
                self.gauges.backlog.get_or_create(&labels).set(count as i64);
                let age_s = oldest.map_or(0.0, |at| now.since_ms(at).max(0) as f64 / 1_000.0);
                self.gauges.backlog_age.get_or_create(&labels).set(age_s);
            }
        }
        self.read_questions(app).await?;
        self.gauges.webhook_endpoints.clear();
        if let Some(endpoints) = app.webhooks.known() {
            for status in [EndpointStatus::Enabled, EndpointStatus::Disabled] {
                let count = endpoints.iter().filter(|endpoint| endpoint.status == status).count();
                let labels: Labels = vec![("status", status.word().into())];
                self.gauges.webhook_endpoints.get_or_create(&labels).set(count as i64);
            }
        }
        let open = app.connections.iter().map(|stats| stats.open.load(Ordering::Relaxed) as i64);
        self.gauges.connections.set(open.sum());
        for home in app.all() {
            let store = app.store(home);
            let its_name: Labels = vec![("home", Arc::clone(app.name(home)))];
            self.gauges.home_away.get_or_create(&its_name).set(app.is_away(home).into());
            let labels = if app.has_homes() { its_name } else { Labels::new() };
            self.gauges.queue.get_or_create(&labels).set(store.queue_depth() as i64);
            let figures = store.figures();
            for (figure, value, per) in [
                ("batches", figures.batches, 1.0),
                ("commands", figures.commands, 1.0),
                ("refused_queue_full", figures.overloaded, 1.0),
                ("dropped_past_deadline", figures.expired, 1.0),
                ("failed_batches", figures.failed, 1.0),
                ("queue_wait_seconds", figures.queue_wait_us, 1_000_000.0),
                ("busy_seconds", figures.busy_us, 1_000_000.0),
            ] {
                let value = value as f64 / per;
                self.gauges.writer.get_or_create(&named(home, "figure", figure)).set(value);
            }
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string can't fail");
        Ok(text)
    }
}
