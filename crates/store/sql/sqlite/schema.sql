-- Written by a test from what the migrations make. Do not edit.

CREATE TABLE access_codes (
  event_no       INTEGER NOT NULL,
  code           TEXT    NOT NULL,
  allocation     INTEGER,
  presale        INTEGER NOT NULL CHECK (presale IN (0, 1)),
  tickets_max    INTEGER NOT NULL CHECK (tickets_max > 0),
  tickets_in_use INTEGER NOT NULL CHECK (tickets_in_use >= 0),
  valid_from     INTEGER,
  valid_until    INTEGER,
  revoked_at     INTEGER,
  created_at     INTEGER NOT NULL,
  PRIMARY KEY (event_no, code)
) STRICT, WITHOUT ROWID;

CREATE TABLE allocations (
  event_no   INTEGER NOT NULL,
  allocation INTEGER NOT NULL CHECK (allocation > 0),
  name       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (event_no, allocation),
  UNIQUE (event_no, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
  key_id        BLOB    NOT NULL PRIMARY KEY,
  secret_sha256 BLOB    NOT NULL UNIQUE,
  role          TEXT    NOT NULL CHECK (role IN ('operator', 'partner', 'gate', 'reader')),
  name          TEXT    NOT NULL,
  created_at    INTEGER NOT NULL,
  revoked_at    INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE callbacks (
  provider_event_id TEXT    NOT NULL PRIMARY KEY,
  event_no          INTEGER NOT NULL,
  digest            BLOB    NOT NULL,
  kind              TEXT    NOT NULL,
  reference         TEXT,
  claimed_order     BLOB,
  verdict           TEXT    NOT NULL CHECK (verdict IN ('applied', 'stale', 'conflict', 'already_paid_reconcile', 'refund_pending', 'parked')),
  received_at       INTEGER NOT NULL,
  due_at            INTEGER NOT NULL,
  case_id           BLOB
) STRICT, WITHOUT ROWID;

CREATE INDEX callbacks_parked ON callbacks (due_at) WHERE verdict = 'parked';

CREATE TABLE cases (
  case_id       BLOB    NOT NULL PRIMARY KEY,
  event_no      INTEGER NOT NULL,
  kind          TEXT    NOT NULL,
  order_id      BLOB,
  operation_id  BLOB,
  subject       TEXT, -- the provider's object in question, where it is no attempt of ours
  opened_at     INTEGER NOT NULL,
  evidence      TEXT    NOT NULL,
  status        TEXT    NOT NULL CHECK (status IN ('OPEN', 'CLOSED')),
  owner         TEXT    NOT NULL,
  next_check_at INTEGER NOT NULL,
  action        TEXT,
  note          TEXT,
  actor         TEXT,
  acted_at      INTEGER,
  CHECK (status = 'OPEN' OR action IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX cases_by_age ON cases (status DESC, opened_at);

CREATE INDEX cases_of_order ON cases (order_id) WHERE status = 'OPEN' AND order_id IS NOT NULL;

CREATE TABLE erasures (
  digest     BLOB    NOT NULL PRIMARY KEY,
  subject    TEXT    NOT NULL CHECK (subject IN ('account', 'email')),
  note       TEXT    NOT NULL,
  actor      TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  event_no            INTEGER PRIMARY KEY CHECK (event_no BETWEEN 0 AND 16777215),
  event_id            BLOB    NOT NULL UNIQUE CHECK (length(event_id) = 16),
  name                TEXT    NOT NULL,
  currency            TEXT    NOT NULL CHECK (length(currency) = 3),
  starts_at           INTEGER NOT NULL,
  on_sale_at          INTEGER,
  off_sale_at         INTEGER,
  timezone            TEXT    NOT NULL,
  created_at          INTEGER NOT NULL,
  status              TEXT    NOT NULL CHECK (status IN ('DRAFT', 'OPEN', 'PAUSED', 'CLOSED')),
  hold_ttl_ms         INTEGER NOT NULL CHECK (hold_ttl_ms > 0),
  payment_grace_ms    INTEGER NOT NULL CHECK (payment_grace_ms >= 0),
  seats_per_hold_max  INTEGER NOT NULL CHECK (seats_per_hold_max > 0),
  tickets_per_account_max         INTEGER NOT NULL CHECK (tickets_per_account_max > 0),
  payment_pending_per_account_max INTEGER NOT NULL CHECK (payment_pending_per_account_max > 0),
  payment_pending_max INTEGER NOT NULL CHECK (payment_pending_max > 0),
  admission           TEXT    NOT NULL CHECK (admission IN ('open', 'queue')),
  queue_order         TEXT    NOT NULL CHECK (queue_order IN ('fifo', 'lottery')),
  shoppers_max        INTEGER NOT NULL CHECK (shoppers_max > 0),
  in_doubt            TEXT    NOT NULL CHECK (in_doubt IN ('keep', 'release')),
  orphan_seats        TEXT    NOT NULL CHECK (orphan_seats IN ('allow', 'avoid')),
  payment             TEXT    NOT NULL CHECK (payment IN ('authorize_then_capture', 'charge')),
  ga_max              INTEGER CHECK (ga_max >= 0),
  reentry             INTEGER NOT NULL CHECK (reentry IN (0, 1)),
  -- The point of order: the fence, the clock that never runs backwards, the number of the last log entry.
  epoch               INTEGER NOT NULL,
  clock               INTEGER NOT NULL,
  version             INTEGER NOT NULL CHECK (version >= 0),
  manifest_version    INTEGER NOT NULL CHECK (manifest_version >= 0),
  seat_count          INTEGER NOT NULL CHECK (seat_count >= 0),
  price_level_count   INTEGER NOT NULL CHECK (price_level_count >= 0),
  price_version       INTEGER NOT NULL CHECK (price_version >= 0),
  payment_pending     INTEGER NOT NULL CHECK (payment_pending >= 0),
  area_count          INTEGER NOT NULL CHECK (area_count >= 0),
  ga_in_use           INTEGER NOT NULL CHECK (ga_in_use >= 0),
  allocation_count    INTEGER NOT NULL CHECK (allocation_count >= 0),
  -- The home the event has moved to. Nothing of it is decided here any more.
  elsewhere           TEXT
) STRICT;

CREATE TABLE ga_areas (
  event_no    INTEGER NOT NULL,
  position    INTEGER NOT NULL,
  ga_area     TEXT    NOT NULL,
  capacity    INTEGER NOT NULL CHECK (capacity >= 0),
  price_level INTEGER NOT NULL,
  PRIMARY KEY (event_no, position),
  UNIQUE (event_no, ga_area)
) STRICT, WITHOUT ROWID;

CREATE TABLE ga_buckets (
  event_no   INTEGER NOT NULL,
  area       INTEGER NOT NULL,
  bucket     INTEGER NOT NULL,
  capacity   INTEGER NOT NULL CHECK (capacity >= 0),
  held       INTEGER NOT NULL CHECK (held >= 0),
  sold       INTEGER NOT NULL CHECK (sold >= 0),
  allocation INTEGER,
  version    INTEGER NOT NULL,
  PRIMARY KEY (event_no, area, bucket),
  CHECK (held + sold <= capacity)
) STRICT, WITHOUT ROWID;

CREATE TABLE holds (
  hold_id          BLOB    NOT NULL PRIMARY KEY,
  event_no         INTEGER NOT NULL,
  account_id       TEXT    NOT NULL,
  status           TEXT    NOT NULL CHECK (status IN ('ACTIVE', 'PAYMENT_PENDING', 'CONVERTED', 'RELEASED', 'EXPIRED')),
  expires_at       INTEGER NOT NULL,
  first_expires_at INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  seats            TEXT    NOT NULL, -- JSON list of ordinals, ascending
  ga               TEXT    NOT NULL, -- JSON list of places: {"a": area, "b": bucket, "q": how many}
  code             TEXT,
  price_version    INTEGER NOT NULL,
  total_minor      INTEGER NOT NULL CHECK (total_minor >= 0),
  order_id         BLOB,
  grace_used       INTEGER NOT NULL CHECK (grace_used IN (0, 1)),
  in_doubt         INTEGER NOT NULL CHECK (in_doubt IN (0, 1)),
  CHECK (in_doubt = 0 OR status = 'PAYMENT_PENDING'),
  CHECK (status <> 'PAYMENT_PENDING' OR (grace_used = 1 AND order_id IS NOT NULL)),
  CHECK (expires_at >= first_expires_at)
) STRICT, WITHOUT ROWID;

CREATE INDEX holds_due ON holds (expires_at) WHERE status IN ('ACTIVE', 'PAYMENT_PENDING') AND in_doubt = 0;

CREATE INDEX holds_live ON holds (event_no, account_id) WHERE status IN ('ACTIVE', 'PAYMENT_PENDING');

CREATE UNIQUE INDEX holds_order ON holds (order_id) WHERE order_id IS NOT NULL;

CREATE TABLE idempotency_keys (
  key        BLOB    NOT NULL PRIMARY KEY,
  event_no   INTEGER NOT NULL,
  digest     BLOB    NOT NULL,
  answer     TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE log (
  event_no INTEGER NOT NULL,
  version  INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  kind     TEXT    NOT NULL,
  payload  TEXT    NOT NULL,
  PRIMARY KEY (event_no, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE manifest_seats (
  event_no        INTEGER NOT NULL,
  ordinal         INTEGER NOT NULL,
  seat_id         TEXT    NOT NULL,
  section         INTEGER NOT NULL,
  row_label       TEXT    NOT NULL,
  seat_label      TEXT    NOT NULL,
  x               REAL    NOT NULL,
  y               REAL    NOT NULL,
  accessible      INTEGER NOT NULL CHECK (accessible IN (0, 1)),
  companion_of    TEXT,
  restricted_view INTEGER NOT NULL CHECK (restricted_view IN (0, 1)),
  rank            INTEGER NOT NULL CHECK (rank >= 0),
  PRIMARY KEY (event_no, ordinal),
  UNIQUE (event_no, seat_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
  operation_id         BLOB    NOT NULL PRIMARY KEY,
  event_no             INTEGER NOT NULL,
  order_id             BLOB    NOT NULL,
  seq                  INTEGER NOT NULL,
  kind                 TEXT    NOT NULL CHECK (kind IN ('AUTHORIZE', 'CAPTURE', 'VOID', 'REFUND')),
  status               TEXT    NOT NULL CHECK (status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN', 'SUCCEEDED', 'FAILED')),
  target               BLOB,
  reference            TEXT,
  amount_minor         INTEGER NOT NULL CHECK (amount_minor >= 0),
  currency             TEXT    NOT NULL,
  base_minor           INTEGER NOT NULL CHECK (base_minor >= 0),
  payment_method_token TEXT,
  next_action_url      TEXT,
  failure_code         TEXT,
  created_at           INTEGER NOT NULL,
  updated_at           INTEGER NOT NULL,
  due_at               INTEGER NOT NULL,
  tries                INTEGER NOT NULL,
  UNIQUE (order_id, seq),
  CHECK ((kind = 'AUTHORIZE') = (target IS NULL)),
  -- A card is kept no longer than its attempt lives.
  CHECK (payment_method_token IS NULL OR status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN'))
) STRICT, WITHOUT ROWID;

CREATE INDEX operations_due ON operations (due_at) WHERE status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN');

CREATE UNIQUE INDEX operations_live ON operations (order_id, kind, ifnull(target, x''))
  WHERE status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN');

CREATE UNIQUE INDEX operations_reference ON operations (reference) WHERE kind = 'AUTHORIZE' AND reference IS NOT NULL;

CREATE TABLE orders (
  order_id       BLOB    NOT NULL PRIMARY KEY,
  event_no       INTEGER NOT NULL,
  hold_id        BLOB    NOT NULL UNIQUE,
  account_id     TEXT    NOT NULL,
  amount_minor   INTEGER NOT NULL CHECK (amount_minor >= 0),
  currency       TEXT    NOT NULL,
  price_version  INTEGER NOT NULL,
  ticket_count   INTEGER NOT NULL CHECK (ticket_count >= 0), -- seats and places, less what was given back
  returned_seats TEXT    NOT NULL,
  returned_ga    TEXT    NOT NULL,
  ticketed       INTEGER NOT NULL CHECK (ticketed IN (0, 1)),
  status         TEXT    NOT NULL CHECK (status IN ('AWAITING_PAYMENT', 'CONFIRMED', 'CANCELLED', 'EXPIRED')),
  payment_status TEXT    NOT NULL CHECK (payment_status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN', 'AUTHORIZED', 'DECLINED',
                                         'CAPTURED', 'VOID_PENDING', 'VOIDED', 'REFUND_PENDING', 'REFUNDED')),
  paid_by        BLOB,
  created_at     INTEGER NOT NULL,
  confirmed_at   INTEGER,
  email          TEXT,
  return_url     TEXT,
  CHECK (status <> 'CONFIRMED' OR (paid_by IS NOT NULL AND confirmed_at IS NOT NULL)),
  CHECK (status NOT IN ('AWAITING_PAYMENT', 'EXPIRED') OR paid_by IS NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX orders_sold ON orders (event_no, account_id) WHERE status = 'CONFIRMED';

CREATE INDEX orders_to_ticket ON orders (confirmed_at)
  WHERE status = 'CONFIRMED' AND payment_status = 'CAPTURED' AND ticketed = 0;

CREATE TABLE price_levels (
  event_no INTEGER NOT NULL,
  level    INTEGER NOT NULL,
  name     TEXT    NOT NULL,
  color    TEXT,
  PRIMARY KEY (event_no, level),
  UNIQUE (event_no, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE prices (
  event_no      INTEGER NOT NULL,
  price_version INTEGER NOT NULL,
  level         INTEGER NOT NULL,
  amount_minor  INTEGER CHECK (amount_minor >= 0),
  PRIMARY KEY (event_no, price_version, level)
) STRICT, WITHOUT ROWID;

CREATE TABLE progress (
  name       TEXT    NOT NULL PRIMARY KEY,
  value      TEXT    NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE quota_transfers (
  transfer_id BLOB    NOT NULL PRIMARY KEY,
  event_no    INTEGER NOT NULL,
  area        INTEGER NOT NULL,
  from_bucket INTEGER NOT NULL,
  to_bucket   INTEGER NOT NULL CHECK (to_bucket <> from_bucket),
  quantity    INTEGER NOT NULL CHECK (quantity > 0),
  status      TEXT    NOT NULL CHECK (status IN ('IN_FLIGHT', 'ARRIVED', 'RETURNED')),
  actor       TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  ended_at    INTEGER,
  CHECK ((status = 'IN_FLIGHT') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX quota_transfers_in_flight ON quota_transfers (created_at) WHERE status = 'IN_FLIGHT';

CREATE TABLE refunds (
  operation_id BLOB    NOT NULL PRIMARY KEY,
  event_no     INTEGER NOT NULL,
  order_id     BLOB    NOT NULL,
  reason       TEXT    NOT NULL,
  resell       INTEGER NOT NULL CHECK (resell IN (0, 1)),
  seats        TEXT    NOT NULL,
  ga           TEXT    NOT NULL,
  actor        TEXT    NOT NULL,
  created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX refunds_of_order ON refunds (order_id);

CREATE TABLE scans (
  event_no       INTEGER NOT NULL,
  scan_id        TEXT    NOT NULL,
  ticket_id      BLOB    NOT NULL,
  generation     INTEGER NOT NULL,
  direction      TEXT    NOT NULL CHECK (direction IN ('IN', 'OUT')),
  gate           TEXT    NOT NULL,
  scanned_at     INTEGER NOT NULL,
  received_at    INTEGER NOT NULL,
  result         TEXT    NOT NULL CHECK (result IN ('ADMIT', 'ALREADY_USED', 'REVOKED', 'WRONG_EVENT', 'INVALID', 'EXITED', 'NOT_INSIDE')),
  let_in_offline INTEGER NOT NULL CHECK (let_in_offline IN (0, 1)),
  PRIMARY KEY (event_no, scan_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX scans_in_conflict ON scans (event_no, received_at) WHERE let_in_offline = 1 AND result <> 'ADMIT';

CREATE INDEX scans_of_ticket ON scans (ticket_id);

CREATE TABLE schema_migrations (
       number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 BLOB NOT NULL, applied_at TEXT NOT NULL
     ) STRICT;

CREATE TABLE seats (
  event_no        INTEGER NOT NULL,
  ordinal         INTEGER NOT NULL,
  status          INTEGER NOT NULL CHECK (status BETWEEN 0 AND 3),
  hold_id         BLOB,
  hold_expires_at INTEGER,
  order_id        BLOB,
  price_level     INTEGER NOT NULL,
  version         INTEGER NOT NULL,
  allocation      INTEGER, -- the party it is set aside for
  PRIMARY KEY (event_no, ordinal),
  CHECK ((status IN (1, 2)) = (hold_id IS NOT NULL)),
  CHECK ((status = 1) = (hold_expires_at IS NOT NULL)),
  CHECK ((status = 2) = (order_id IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE secrets (
  name       TEXT    NOT NULL PRIMARY KEY,
  value      BLOB    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sections (
  event_no INTEGER NOT NULL,
  section  INTEGER NOT NULL,
  name     TEXT    NOT NULL,
  PRIMARY KEY (event_no, section)
) STRICT, WITHOUT ROWID;

CREATE TABLE settlement_lines (
  line_id      TEXT    NOT NULL PRIMARY KEY,
  event_no     INTEGER NOT NULL,
  order_id     BLOB    NOT NULL,
  operation_id BLOB    NOT NULL, -- the attempt whose money it is
  category     TEXT    NOT NULL,
  amount_minor INTEGER NOT NULL,
  fee_minor    INTEGER NOT NULL,
  currency     TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  available_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX settlement_lines_of_event ON settlement_lines (event_no, created_at);

CREATE TABLE tickets (
  ticket_id     BLOB    NOT NULL PRIMARY KEY,
  event_no      INTEGER NOT NULL,
  order_id      BLOB    NOT NULL,
  ordinal       INTEGER,
  area          INTEGER,
  generation    INTEGER NOT NULL CHECK (generation BETWEEN 1 AND 65535),
  status        TEXT    NOT NULL CHECK (status IN ('VALID', 'SUSPENDED', 'REVOKED')),
  inside        INTEGER NOT NULL CHECK (inside IN (0, 1)),
  admissions    INTEGER NOT NULL CHECK (admissions >= 0),
  admitted_at   INTEGER,
  admitted_gate TEXT,
  issued_at     INTEGER NOT NULL,
  version       INTEGER NOT NULL,
  CHECK ((ordinal IS NULL) <> (area IS NULL)),
  CHECK ((admissions = 0) = (admitted_at IS NULL)),
  CHECK (inside = 0 OR admissions > 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX tickets_moved ON tickets (event_no) WHERE status <> 'VALID' OR generation > 1;

CREATE INDEX tickets_of_order ON tickets (order_id);

CREATE UNIQUE INDEX tickets_of_seat ON tickets (event_no, ordinal) WHERE ordinal IS NOT NULL AND status <> 'REVOKED';

CREATE TABLE webhook_deliveries (
  event_no    INTEGER NOT NULL,
  endpoint_id BLOB    NOT NULL,
  version     INTEGER NOT NULL,
  message_id  BLOB    NOT NULL UNIQUE,
  subject     BLOB    NOT NULL,
  at          INTEGER NOT NULL,
  status      TEXT    NOT NULL CHECK (status IN ('PENDING', 'DELIVERED', 'FAILED')),
  tries       INTEGER NOT NULL CHECK (tries >= 0),
  due_at      INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  last_status INTEGER NOT NULL, -- of the last answer; 0 for none
  last_error  TEXT    NOT NULL,
  PRIMARY KEY (event_no, endpoint_id, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_deliveries_ahead ON webhook_deliveries (event_no, endpoint_id, subject, version) WHERE status <> 'DELIVERED';

CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (endpoint_id, at);

CREATE INDEX webhook_deliveries_done ON webhook_deliveries (updated_at) WHERE status = 'DELIVERED';

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at) WHERE status = 'PENDING';

CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (endpoint_id, updated_at) WHERE status = 'FAILED';

CREATE INDEX webhook_deliveries_open ON webhook_deliveries (endpoint_id, at) WHERE status <> 'DELIVERED';

CREATE TABLE webhook_endpoints (
  endpoint_id     BLOB    NOT NULL PRIMARY KEY,
  url             TEXT    NOT NULL,
  types           TEXT    NOT NULL, -- JSON list of the types of messages it wants
  secret          BLOB    NOT NULL,
  -- Until then messages are signed with this one too.
  secret_before   BLOB,
  signed_until    INTEGER,
  status          TEXT    NOT NULL CHECK (status IN ('ENABLED', 'DISABLED', 'DELETED')),
  created_at      INTEGER NOT NULL,
  enabled_at      INTEGER NOT NULL,
  disabled_at     INTEGER,
  disabled_reason TEXT,
  CHECK ((status = 'ENABLED') = (disabled_at IS NULL)),
  CHECK ((secret_before IS NULL) = (signed_until IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_progress (
  event_no    INTEGER NOT NULL,
  endpoint_id BLOB    NOT NULL,
  types       TEXT    NOT NULL,
  started     INTEGER NOT NULL CHECK (started >= 0),
  version     INTEGER NOT NULL,
  -- Deliveries that were done long ago and are no longer kept.
  forgotten   INTEGER NOT NULL CHECK (forgotten >= 0),
  PRIMARY KEY (event_no, endpoint_id),
  CHECK (version >= started)
) STRICT, WITHOUT ROWID;
