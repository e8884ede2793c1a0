//! A running server: started from settings, stopped without losing anything it accepted.

use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use onsale_core::id::{EventNo, KeyId, Seed};
use onsale_store::{ApiKey, Clock, Committed, Home, HomeOptions, Homes, Options, Role, Store};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::app::{App, Gateways, Parts};
use crate::auth::{self, API_KEY_LENGTH_MIN, Auth};
use crate::clock::ServerClock;
use crate::config::{Settings, Standby};
use crate::desk::HomeNo;
use crate::erasure;
use crate::follow::Followers;
use crate::gateway::simulator::{Simulator, SimulatorConfig};
use crate::gateway::stripe::{Stripe, StripeConfig};
use crate::http::listener::{self, ListenerLimits};
use crate::http::router;
use crate::reconcile::schedule::Plan;
use crate::tickets;
use crate::webhooks::Webhooks;
use crate::webhooks::reach::Reach;
use crate::worker;

/// Calls to the provider at once on behalf of callbacks.
const CALLBACK_CONNECTIONS_MAX: usize = 128;

/// Open files beside connections: the database's, the operators' connections, the logs.
const OTHER_FILES: usize = 512;

/// Pages of 4 KiB.
const PAGES_PER_MIB: u32 = 256;

/// How a server is started, beside its settings.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mode {
    /// The clock can be moved, and there are routes to do it.
    pub(crate) test: bool,
    /// In test mode: workers run by themselves all the same.
    pub(crate) workers: bool,
    /// Run the payment simulator in this process, here, and pay through it.
    pub(crate) simulator: Option<SocketAddr>,
}

/// A server that serves.
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    pub(crate) operator_listen: SocketAddr,
    pub(crate) simulator: Option<Simulator>,
    pub(crate) app: Arc<App>,
    drain: Duration,
    stopping: watch::Sender<bool>,
    closing: watch::Sender<bool>,
    listeners: Vec<JoinHandle<()>>,
    workers: JoinSet<()>,
}

impl Server {
    /// Starts a server; when this returns it serves. A key made at the first start is written to `operator.key`.
    pub(crate) async fn start(settings: &Settings, mode: Mode) -> anyhow::Result<Server> {
        if mode.test {
            let loopback = settings.listen.ip().is_loopback() && settings.operator_listen.ip().is_loopback();
            ensure!(loopback, "test mode is refused: a listener is not on loopback");
            tracing::warn!(
                test_mode = true,
                "Test mode: anyone who reaches the operators' listener can move the clock"
            );
        }
        allow_files(settings);
        let clock =
            Arc::new(if mode.test { ServerClock::movable(mode.workers) } else { ServerClock::system() });
        let followers = Arc::new(Followers::new(settings.database.homes().count()));
        let (opening, clock_of, followed) = (settings.clone(), Arc::clone(&clock), Arc::clone(&followers));
        // Whoever waits for a server does so in a thread that may.
        let homes = tokio::task::spawn_blocking(move || open_homes(&opening, &clock_of, &followed)).await??;
        let session_secret =
            homes.main().secret("session", rand::random::<[u8; 32]>().to_vec(), clock.now()).await?;
        let auth = Auth::new(&session_secret);
        let signer = tickets::signer(homes.main(), clock.now()).await?;
        let keys = {
            let homes = &homes;
            tokio::task::block_in_place(|| homes.main().read(|reader| reader.api_keys()))?
        };
        if keys.is_empty() {
            first_key(settings, homes.main(), &clock).await?;
        }

        let (gateway, simulator) = payment(settings, mode).await?;
        let webhooks = Webhooks::new(match (settings.webhooks.allow_private, mode.test) {
            (true, _) => Reach::Private,
            (false, true) => Reach::Loopback,
            (false, false) => Reach::Public,
        })?;
        let buyers = listener::bind(settings.listen)
            .with_context(|| format!("failed to listen on {}", settings.listen))?;
        let operators = listener::bind(settings.operator_listen)
            .with_context(|| format!("failed to listen on {}", settings.operator_listen))?;
        let (listen, operator_listen) = (buyers.local_addr()?, operators.local_addr()?);
        if let Some(simulator) = &simulator {
            simulator.set_webhook_url(format!("http://{listen}/v1/payment-callbacks/stripe"));
        }
        // Each listener counts its own connections: a crowd of buyers must not keep the operators out.
        let [buyers_limits, operators_limits] = [(); 2].map(|()| ListenerLimits {
            connections_max: settings.http.connections_max,
            header_read_timeout_ms: settings.http.header_read_timeout_ms,
            ..ListenerLimits::default()
        });
        let (stopping, is_stopping) = watch::channel(false);
        let (closing, is_closing) = watch::channel(false);
        let app = Arc::new(App::new(Parts {
            homes,
            clock,
            auth,
            signer,
            followers,
            gateway,
            webhooks,
            connections: [Arc::clone(&buyers_limits.stats), Arc::clone(&operators_limits.stats)],
            payments_at_once: settings.payment.connections_max,
            reconcile: Plan::of(&settings.reconcile),
            stopping: is_stopping,
            test_mode: mode.test,
        }));
        app.reload_keys().await?;
        erasure::make_key(&app).await?;
        let mut workers = worker::start_following(&app);
        if !mode.test || mode.workers {
            let mut own = worker::start(&app);
            workers.spawn(async move { while own.join_next().await.is_some() {} });
        }
        let listeners = vec![
            tokio::spawn(listener::serve(buyers, router::buyers(&app), buyers_limits, is_closing.clone())),
            tokio::spawn(listener::serve(operators, router::operators(&app), operators_limits, is_closing)),
        ];
        let drain = Duration::from_millis(settings.http.drain_ms);
        Ok(Server { listen, operator_listen, simulator, app, drain, stopping, closing, listeners, workers })
    }

    /// Waits until a writer has ended by itself: then nothing more is decided there, and the program must start anew.
    pub(crate) async fn writer_ended(&self) {
        let mut endings = JoinSet::new();
        for home in self.app.all() {
            let app = Arc::clone(&self.app);
            endings.spawn(async move { app.store(home).ended().await });
        }
        endings.join_next().await;
    }

    /// Stops: first it says so, then it takes no more, then it finishes what it took.
    pub(crate) async fn stop(self) {
        self.stopping.send_replace(true);
        self.app.followers.orders.wake_all();
        tokio::time::sleep(self.drain).await;
        self.closing.send_replace(true);
        for listener in self.listeners {
            let _ = listener.await;
        }
        let mut workers = self.workers;
        while workers.join_next().await.is_some() {}
        let app = self.app;
        let close = move || app.homes.all().iter().for_each(|home| home.store.close());
        let _ = tokio::task::spawn_blocking(close).await;
        if let Some(simulator) = self.simulator {
            simulator.stop().await;
        }
    }
}

/// Lets this process open as many files as its connections may need: what a login or a service manager grants at first
/// (1,024 as a rule) is less than a sale's opening brings.
fn allow_files(settings: &Settings) {
    let connections =
        settings.http.connections_max + settings.payment.connections_max + CALLBACK_CONNECTIONS_MAX;
    let wanted = (connections + OTHER_FILES) as u64;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(allowed) if allowed >= wanted => {}
        Ok(allowed) => tracing::warn!(
            files.wanted = wanted,
            files.allowed = allowed,
            "The system allows too few open files for http.connections_max"
        ),
        Err(error) => tracing::warn!(%error, "Could not raise the limit on open files"),
    }
}

async fn payment(settings: &Settings, mode: Mode) -> anyhow::Result<(Option<Gateways>, Option<Simulator>)> {
    let configured = &settings.payment;
    let (base_url, secret_key, webhook_secrets, simulator) = match mode.simulator {
        Some(listen) => {
            let webhook_secret = format!("whsec_{}", URL_SAFE_NO_PAD.encode(rand::random::<[u8; 24]>()));
            let config = SimulatorConfig {
                listen,
                webhook_secret: webhook_secret.clone(),
                webhook_url: None,
                seed: rand::random(),
            };
            let simulator = Simulator::start(config)
                .await
                .with_context(|| format!("failed to start the payment simulator on {listen}"))?;
            (
                format!("http://{}", simulator.addr),
                "sk_test_simulator".to_owned(),
                vec![webhook_secret],
                Some(simulator),
            )
        }
        None if configured.secret_key.is_empty() => {
            tracing::warn!("No payment provider is configured: nobody can pay");
            return Ok((None, None));
        }
        None => {
            let (key, secrets) = (configured.secret_key.clone(), configured.webhook_secrets.clone());
            (configured.base_url.clone(), key, secrets, None)
        }
    };
    let adapter = |connections_max| {
        Stripe::new(StripeConfig {
            base_url: base_url.clone(),
            secret_key: secret_key.clone(),
            webhook_secrets: webhook_secrets.clone(),
            request_timeout_ms: configured.request_timeout_ms,
            connections_max,
        })
    };
    let for_workers = adapter(configured.connections_max)?;
    let for_callbacks = adapter(CALLBACK_CONNECTIONS_MAX)?;
    Ok((Some(Gateways { for_workers, for_callbacks }), simulator))
}

/// Opens all databases of an installation, and begins to follow them.
fn open_homes(
    settings: &Settings,
    clock: &Arc<ServerClock>,
    followers: &Arc<Followers>,
) -> anyhow::Result<Homes> {
    let mut homes = Vec::new();
    for (place, (name, url)) in settings.database.homes().enumerate() {
        let (clock, following) = (Arc::clone(clock) as Arc<dyn Clock>, Arc::clone(followers));
        let publish = move |committed: &Committed| following.follow(HomeNo(place), committed);
        let store = match url {
            Some(url) => {
                let mut options = HomeOptions::new(name, url, clock);
                options.needs_standby = settings.database.standby == Standby::Required;
                options.lanes = settings.database.writers;
                Store::connect(options, publish)?
            }
            None => {
                let mut options = Options::new(settings.data.clone(), clock);
                let size_mib_max = settings.database.size_mib_max;
                options.pages_max = (size_mib_max > 0).then_some(size_mib_max * PAGES_PER_MIB);
                Store::open(options, publish)?
            }
        };
        followers.begin(&store)?;
        homes.push(Home { name: name.into(), store });
    }
    let homes = Homes::new(homes);
    homes.refresh()?;
    Ok(homes)
}

/// For an empty database: the operator's key, from the environment, or made and left in a file only its owner can read.
async fn first_key(settings: &Settings, store: &Store, clock: &ServerClock) -> anyhow::Result<()> {
    let given = std::env::var("ONSALE_OPERATOR_KEY").ok().filter(|key| !key.is_empty());
    let secret = match &given {
        Some(key) => {
            let fits = key.starts_with("osk_")
                && key.len() >= API_KEY_LENGTH_MIN
                && key.bytes().all(|b| b.is_ascii_graphic());
            ensure!(
                fits,
                "ONSALE_OPERATOR_KEY must begin with osk_ and have at least {API_KEY_LENGTH_MIN} visible characters"
            );
            key.clone()
        }
        None => auth::new_api_secret(),
    };
    let key_id: KeyId = Seed::new(EventNo::HOUSE, clock.now(), rand::random()).mint();
    let digest = auth::digest(&secret);
    if given.is_none() {
        let path = settings.data.join("operator.key");
        std::fs::create_dir_all(&settings.data)
            .with_context(|| format!("failed to make the data folder {}", settings.data.display()))?;
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        // The mode above is for a new file; one that was there keeps its own until it is told otherwise.
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        file.write_all(format!("{secret}\n").as_bytes())?;
        file.sync_all()?;
        tracing::warn!(path = %path.display(), "Made an operator's key; it is in this file");
    }
    let name = "first operator".to_owned();
    let key = ApiKey { key_id, secret_sha256: digest, role: Role::Operator, name, created_at: clock.now() };
    if let Err(error) = store.add_key(key).await {
        // Another process may have begun at the same time, with the same key.
        let known = tokio::task::block_in_place(|| store.read(|reader| reader.api_keys()))?;
        ensure!(known.iter().any(|key| key.secret_sha256 == digest), error);
    }
    Ok(())
}
