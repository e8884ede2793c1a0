-- Ids are 128 bits (crates/core/src/id.rs), kept as uuid for its size and order, not for its meaning; instants are milliseconds
-- since 1970 in UTC; money is in minor units. A seat's status is the digit the API shows: 0 available, 1 held, 2 sold, 3 not for
-- sale. The tables are those of the embedded database, column by column, so that what is read is asked for in the same words.

-- What the same words need: lists and texts kept as JSON, taken apart.
CREATE FUNCTION each_of(list text) RETURNS TABLE (value bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT item::bigint FROM jsonb_array_elements_text(list::jsonb) AS item $$;
CREATE FUNCTION each_of(object text, path text) RETURNS TABLE (value bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT item::bigint FROM jsonb_array_elements_text(coalesce(object::jsonb -> substr(path, 3), '[]')) AS item $$;
CREATE FUNCTION json_objects(list text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT item::text FROM jsonb_array_elements(list::jsonb) AS item $$;
CREATE FUNCTION json_array_length(list text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT jsonb_array_length(list::jsonb) $$;
CREATE FUNCTION json_extract(object text, path text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT object::jsonb ->> substr(path, 3) $$;

-- One row for each event changes with each batch: room beside it keeps its versions on one page.
CREATE TABLE events (
  event_no            integer PRIMARY KEY CHECK (event_no BETWEEN 0 AND 16777215),
  event_id            uuid    NOT NULL UNIQUE,
  name                text    NOT NULL,
  currency            text    NOT NULL CHECK (length(currency) = 3),
  starts_at           bigint  NOT NULL,
  on_sale_at          bigint,
  off_sale_at         bigint,
  timezone            text    NOT NULL,
  created_at          bigint  NOT NULL,
  status              text    NOT NULL CHECK (status IN ('DRAFT', 'OPEN', 'PAUSED', 'CLOSED')),
  hold_ttl_ms         bigint  NOT NULL CHECK (hold_ttl_ms > 0),
  payment_grace_ms    bigint  NOT NULL CHECK (payment_grace_ms >= 0),
  seats_per_hold_max  bigint  NOT NULL CHECK (seats_per_hold_max > 0),
  tickets_per_account_max         bigint NOT NULL CHECK (tickets_per_account_max > 0),
  payment_pending_per_account_max bigint NOT NULL CHECK (payment_pending_per_account_max > 0),
  payment_pending_max bigint  NOT NULL CHECK (payment_pending_max > 0),
  admission           text    NOT NULL CHECK (admission IN ('open', 'queue')),
  queue_order         text    NOT NULL CHECK (queue_order IN ('fifo', 'lottery')),
  shoppers_max        bigint  NOT NULL CHECK (shoppers_max > 0),
  in_doubt            text    NOT NULL CHECK (in_doubt IN ('keep', 'release')),
  orphan_seats        text    NOT NULL CHECK (orphan_seats IN ('allow', 'avoid')),
  payment             text    NOT NULL CHECK (payment IN ('authorize_then_capture', 'charge')),
  ga_max              bigint  CHECK (ga_max >= 0),
  reentry             smallint NOT NULL CHECK (reentry IN (0, 1)),
  -- The point of order: the fence, the clock that never runs backwards, the number of the last log entry.
  epoch               bigint  NOT NULL,
  clock               bigint  NOT NULL,
  version             bigint  NOT NULL CHECK (version >= 0),
  manifest_version    bigint  NOT NULL CHECK (manifest_version >= 0),
  seat_count          bigint  NOT NULL CHECK (seat_count >= 0),
  price_level_count   integer NOT NULL CHECK (price_level_count >= 0),
  price_version       bigint  NOT NULL CHECK (price_version >= 0),
  payment_pending     bigint  NOT NULL CHECK (payment_pending >= 0),
  area_count          integer NOT NULL CHECK (area_count >= 0),
  ga_in_use           bigint  NOT NULL CHECK (ga_in_use >= 0),
  allocation_count    integer NOT NULL CHECK (allocation_count >= 0),
  -- The home the event has moved to, or comes from until it has arrived. Nothing of it is decided here meanwhile.
  elsewhere           text
) WITH (fillfactor = 10);

-- The house: orders what belongs to no event.
INSERT INTO events VALUES (0, '00000000-0000-0000-0000-000000000000', 'house', 'XXX', 0, NULL, NULL, 'UTC', 0, 'CLOSED', 1, 0, 1, 1, 1,
  1, 'open', 'fifo', 1, 'keep', 'allow', 'authorize_then_capture', NULL, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL);

CREATE TABLE price_levels (
  event_no integer NOT NULL,
  level    integer NOT NULL,
  name     text    NOT NULL,
  color    text,
  PRIMARY KEY (event_no, level),
  UNIQUE (event_no, name)
);

CREATE TABLE prices (
  event_no      integer NOT NULL,
  price_version bigint  NOT NULL,
  level         integer NOT NULL,
  amount_minor  bigint  CHECK (amount_minor >= 0),
  PRIMARY KEY (event_no, price_version, level)
);

CREATE TABLE sections (
  event_no integer NOT NULL,
  section  integer NOT NULL,
  name     text    NOT NULL,
  PRIMARY KEY (event_no, section)
);

CREATE TABLE manifest_seats (
  event_no        integer  NOT NULL,
  ordinal         integer  NOT NULL,
  seat_id         text     NOT NULL,
  section         integer  NOT NULL,
  row_label       text     NOT NULL,
  seat_label      text     NOT NULL,
  x               double precision NOT NULL,
  y               double precision NOT NULL,
  accessible      smallint NOT NULL CHECK (accessible IN (0, 1)),
  companion_of    text,
  restricted_view smallint NOT NULL CHECK (restricted_view IN (0, 1)),
  rank            bigint   NOT NULL CHECK (rank >= 0),
  PRIMARY KEY (event_no, ordinal),
  UNIQUE (event_no, seat_id)
);

CREATE TABLE ga_areas (
  event_no    integer NOT NULL,
  position    integer NOT NULL,
  ga_area     text    NOT NULL,
  capacity    bigint  NOT NULL CHECK (capacity >= 0),
  price_level integer NOT NULL,
  PRIMARY KEY (event_no, position),
  UNIQUE (event_no, ga_area)
);

-- A standing area's capacity is that of its buckets and what is in flight between them (R-96). They change with each hold.
CREATE TABLE ga_buckets (
  event_no   integer NOT NULL,
  area       integer NOT NULL,
  bucket     integer NOT NULL,
  capacity   bigint  NOT NULL CHECK (capacity >= 0),
  held       bigint  NOT NULL CHECK (held >= 0),
  sold       bigint  NOT NULL CHECK (sold >= 0),
  allocation integer,
  version    bigint  NOT NULL,
  PRIMARY KEY (event_no, area, bucket),
  CHECK (held + sold <= capacity)
) WITH (fillfactor = 10);

CREATE TABLE quota_transfers (
  transfer_id uuid    NOT NULL PRIMARY KEY,
  event_no    integer NOT NULL,
  area        integer NOT NULL,
  from_bucket integer NOT NULL,
  to_bucket   integer NOT NULL CHECK (to_bucket <> from_bucket),
  quantity    bigint  NOT NULL CHECK (quantity > 0),
  status      text    NOT NULL CHECK (status IN ('IN_FLIGHT', 'ARRIVED', 'RETURNED')),
  actor       text    NOT NULL,
  created_at  bigint  NOT NULL,
  ended_at    bigint,
  CHECK ((status = 'IN_FLIGHT') = (ended_at IS NULL))
);
CREATE INDEX quota_transfers_in_flight ON quota_transfers (created_at) WHERE status = 'IN_FLIGHT';

CREATE TABLE allocations (
  event_no   integer NOT NULL,
  allocation integer NOT NULL CHECK (allocation > 0),
  name       text    NOT NULL,
  created_at bigint  NOT NULL,
  PRIMARY KEY (event_no, allocation),
  UNIQUE (event_no, name)
);

CREATE TABLE access_codes (
  event_no       integer  NOT NULL,
  code           text     NOT NULL,
  allocation     integer,
  presale        smallint NOT NULL CHECK (presale IN (0, 1)),
  tickets_max    bigint   NOT NULL CHECK (tickets_max > 0),
  tickets_in_use bigint   NOT NULL CHECK (tickets_in_use >= 0),
  valid_from     bigint,
  valid_until    bigint,
  revoked_at     bigint,
  created_at     bigint   NOT NULL,
  PRIMARY KEY (event_no, code)
);

-- Whose each seat is. The key makes "two owners" unwritable; the checks tie the status to its owner. No index but the key, and
-- room on each page, so that a seat changes hands without a new entry in any index.
CREATE TABLE seats (
  event_no        integer  NOT NULL,
  ordinal         integer  NOT NULL,
  status          smallint NOT NULL CHECK (status BETWEEN 0 AND 3),
  hold_id         uuid,
  hold_expires_at bigint,
  order_id        uuid,
  price_level     integer  NOT NULL,
  version         bigint   NOT NULL,
  allocation      integer, -- the party it is set aside for
  PRIMARY KEY (event_no, ordinal),
  CHECK ((status IN (1, 2)) = (hold_id IS NOT NULL)),
  CHECK ((status = 1) = (hold_expires_at IS NOT NULL)),
  CHECK ((status = 2) = (order_id IS NOT NULL))
) WITH (fillfactor = 50);

CREATE TABLE holds (
  hold_id          uuid     NOT NULL PRIMARY KEY,
  event_no         integer  NOT NULL,
  account_id       text     NOT NULL,
  status           text     NOT NULL CHECK (status IN ('ACTIVE', 'PAYMENT_PENDING', 'CONVERTED', 'RELEASED', 'EXPIRED')),
  expires_at       bigint   NOT NULL,
  first_expires_at bigint   NOT NULL,
  created_at       bigint   NOT NULL,
  seats            text     NOT NULL, -- JSON list of ordinals, ascending
  ga               text     NOT NULL, -- JSON list of places: {"a": area, "b": bucket, "q": how many}
  code             text,
  price_version    bigint   NOT NULL,
  total_minor      bigint   NOT NULL CHECK (total_minor >= 0),
  order_id         uuid,
  grace_used       smallint NOT NULL CHECK (grace_used IN (0, 1)),
  in_doubt         smallint NOT NULL CHECK (in_doubt IN (0, 1)),
  CHECK (in_doubt = 0 OR status = 'PAYMENT_PENDING'),
  CHECK (status <> 'PAYMENT_PENDING' OR (grace_used = 1 AND order_id IS NOT NULL)),
  CHECK (expires_at >= first_expires_at)
);
-- One order for a hold; most holds never have one, and cost nothing here.
CREATE UNIQUE INDEX holds_order ON holds (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX holds_live ON holds (event_no, account_id) WHERE status IN ('ACTIVE', 'PAYMENT_PENDING');
CREATE INDEX holds_due ON holds (expires_at) WHERE status IN ('ACTIVE', 'PAYMENT_PENDING') AND in_doubt = 0;

CREATE TABLE orders (
  order_id       uuid    NOT NULL PRIMARY KEY,
  event_no       integer NOT NULL,
  hold_id        uuid    NOT NULL UNIQUE,
  account_id     text    NOT NULL,
  amount_minor   bigint  NOT NULL CHECK (amount_minor >= 0),
  currency       text    NOT NULL,
  price_version  bigint  NOT NULL,
  ticket_count   bigint  NOT NULL CHECK (ticket_count >= 0), -- seats and places, less what was given back
  returned_seats text    NOT NULL,
  returned_ga    text    NOT NULL,
  ticketed       smallint NOT NULL CHECK (ticketed IN (0, 1)),
  status         text    NOT NULL CHECK (status IN ('AWAITING_PAYMENT', 'CONFIRMED', 'CANCELLED', 'EXPIRED')),
  payment_status text    NOT NULL CHECK (payment_status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN', 'AUTHORIZED', 'DECLINED',
                                         'CAPTURED', 'VOID_PENDING', 'VOIDED', 'REFUND_PENDING', 'REFUNDED')),
  paid_by        uuid,
  created_at     bigint  NOT NULL,
  confirmed_at   bigint,
  email          text,
  return_url     text,
  CHECK (status <> 'CONFIRMED' OR (paid_by IS NOT NULL AND confirmed_at IS NOT NULL)),
  CHECK (status NOT IN ('AWAITING_PAYMENT', 'EXPIRED') OR paid_by IS NULL)
);
CREATE INDEX orders_sold ON orders (event_no, account_id) WHERE status = 'CONFIRMED';
-- What the issuer of tickets has to do: money that is there by proof, and no tickets yet (R-79).
CREATE INDEX orders_to_ticket ON orders (confirmed_at)
  WHERE status = 'CONFIRMED' AND payment_status = 'CAPTURED' AND ticketed = 0;

CREATE TABLE operations (
  operation_id         uuid    NOT NULL PRIMARY KEY,
  event_no             integer NOT NULL,
  order_id             uuid    NOT NULL,
  seq                  bigint  NOT NULL,
  kind                 text    NOT NULL CHECK (kind IN ('AUTHORIZE', 'CAPTURE', 'VOID', 'REFUND')),
  status               text    NOT NULL CHECK (status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN', 'SUCCEEDED', 'FAILED')),
  target               uuid,
  reference            text,
  amount_minor         bigint  NOT NULL CHECK (amount_minor >= 0),
  currency             text    NOT NULL,
  base_minor           bigint  NOT NULL CHECK (base_minor >= 0),
  payment_method_token text,
  next_action_url      text,
  failure_code         text,
  created_at           bigint  NOT NULL,
  updated_at           bigint  NOT NULL,
  due_at               bigint  NOT NULL,
  tries                bigint  NOT NULL,
  UNIQUE (order_id, seq),
  CHECK ((kind = 'AUTHORIZE') = (target IS NULL)),
  -- A card is kept no longer than its attempt lives.
  CHECK (payment_method_token IS NULL OR status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN'))
);
CREATE UNIQUE INDEX operations_live ON operations (order_id, kind, coalesce(target, '00000000-0000-0000-0000-000000000000'))
  WHERE status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN');
CREATE UNIQUE INDEX operations_reference ON operations (reference) WHERE kind = 'AUTHORIZE' AND reference IS NOT NULL;
CREATE INDEX operations_due ON operations (due_at) WHERE status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN');

CREATE TABLE refunds (
  operation_id uuid     NOT NULL PRIMARY KEY,
  event_no     integer  NOT NULL,
  order_id     uuid     NOT NULL,
  reason       text     NOT NULL,
  resell       smallint NOT NULL CHECK (resell IN (0, 1)),
  seats        text     NOT NULL,
  ga           text     NOT NULL,
  actor        text     NOT NULL,
  created_at   bigint   NOT NULL
);
CREATE INDEX refunds_of_order ON refunds (order_id);

-- One for each seat and place of an order that is paid for by proof.
CREATE TABLE tickets (
  ticket_id     uuid     NOT NULL PRIMARY KEY,
  event_no      integer  NOT NULL,
  order_id      uuid     NOT NULL,
  ordinal       integer,
  area          integer,
  generation    integer  NOT NULL CHECK (generation BETWEEN 1 AND 65535),
  status        text     NOT NULL CHECK (status IN ('VALID', 'SUSPENDED', 'REVOKED')),
  inside        smallint NOT NULL CHECK (inside IN (0, 1)),
  admissions    bigint   NOT NULL CHECK (admissions >= 0),
  admitted_at   bigint,
  admitted_gate text,
  issued_at     bigint   NOT NULL,
  version       bigint   NOT NULL,
  CHECK ((ordinal IS NULL) <> (area IS NULL)),
  CHECK ((admissions = 0) = (admitted_at IS NULL)),
  CHECK (inside = 0 OR admissions > 0)
);
CREATE INDEX tickets_of_order ON tickets (order_id);
-- What a scanner that can't ask must not trust.
CREATE INDEX tickets_moved ON tickets (event_no) WHERE status <> 'VALID' OR generation > 1;
-- A seat has one ticket that is not revoked: nobody shares a chair.
CREATE UNIQUE INDEX tickets_of_seat ON tickets (event_no, ordinal) WHERE ordinal IS NOT NULL AND status <> 'REVOKED';

CREATE TABLE scans (
  event_no       integer  NOT NULL,
  scan_id        text     NOT NULL,
  ticket_id      uuid     NOT NULL,
  generation     integer  NOT NULL,
  direction      text     NOT NULL CHECK (direction IN ('IN', 'OUT')),
  gate           text     NOT NULL,
  scanned_at     bigint   NOT NULL,
  received_at    bigint   NOT NULL,
  result         text     NOT NULL CHECK (result IN ('ADMIT', 'ALREADY_USED', 'REVOKED', 'WRONG_EVENT', 'INVALID', 'EXITED', 'NOT_INSIDE')),
  let_in_offline smallint NOT NULL CHECK (let_in_offline IN (0, 1)),
  PRIMARY KEY (event_no, scan_id)
);
CREATE INDEX scans_of_ticket ON scans (ticket_id);
CREATE INDEX scans_in_conflict ON scans (event_no, received_at) WHERE let_in_offline = 1 AND result <> 'ADMIT';

CREATE TABLE cases (
  case_id       uuid    NOT NULL PRIMARY KEY,
  event_no      integer NOT NULL,
  kind          text    NOT NULL,
  order_id      uuid,
  operation_id  uuid,
  subject       text, -- the provider's object in question, where it is no attempt of ours
  opened_at     bigint  NOT NULL,
  evidence      text    NOT NULL,
  status        text    NOT NULL CHECK (status IN ('OPEN', 'CLOSED')),
  owner         text    NOT NULL,
  next_check_at bigint  NOT NULL,
  action        text,
  note          text,
  actor         text,
  acted_at      bigint,
  CHECK (status = 'OPEN' OR action IS NOT NULL)
);
CREATE INDEX cases_by_age ON cases (status DESC, opened_at);
CREATE INDEX cases_of_order ON cases (order_id) WHERE status = 'OPEN' AND order_id IS NOT NULL;

CREATE TABLE callbacks (
  provider_event_id text    NOT NULL PRIMARY KEY,
  event_no          integer NOT NULL,
  digest            uuid    NOT NULL,
  kind              text    NOT NULL,
  reference         text,
  claimed_order     uuid,
  verdict           text    NOT NULL CHECK (verdict IN ('applied', 'stale', 'conflict', 'already_paid_reconcile', 'refund_pending', 'parked')),
  received_at       bigint  NOT NULL,
  due_at            bigint  NOT NULL,
  case_id           uuid
);
CREATE INDEX callbacks_parked ON callbacks (due_at) WHERE verdict = 'parked';

-- A key belongs to an account and a route, whatever the event: the event is that of its first use.
CREATE TABLE idempotency_keys (
  key        uuid    NOT NULL PRIMARY KEY,
  event_no   integer NOT NULL,
  digest     uuid    NOT NULL,
  answer     text    NOT NULL,
  created_at bigint  NOT NULL
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE log (
  event_no integer NOT NULL,
  version  bigint  NOT NULL,
  at       bigint  NOT NULL,
  kind     text    NOT NULL,
  payload  text    NOT NULL,
  PRIMARY KEY (event_no, version)
);

CREATE TABLE api_keys (
  key_id        uuid   NOT NULL PRIMARY KEY,
  secret_sha256 bytea  NOT NULL UNIQUE,
  role          text   NOT NULL CHECK (role IN ('operator', 'partner', 'gate', 'reader')),
  name          text   NOT NULL,
  created_at    bigint NOT NULL,
  revoked_at    bigint
);

-- The provider's entries for the payments here: what came, what went, what the provider kept. Filled from its own list.
CREATE TABLE settlement_lines (
  line_id      text   NOT NULL PRIMARY KEY,
  event_no     integer NOT NULL,
  order_id     uuid   NOT NULL,
  operation_id uuid   NOT NULL, -- the attempt whose money it is
  category     text   NOT NULL,
  amount_minor bigint NOT NULL,
  fee_minor    bigint NOT NULL,
  currency     text   NOT NULL,
  created_at   bigint NOT NULL,
  available_at bigint NOT NULL
);
CREATE INDEX settlement_lines_of_event ON settlement_lines (event_no, created_at);

-- That persons were erased, and not who: digests under a key of this installation. Kept in the main home alone.
CREATE TABLE erasures (
  digest     uuid   NOT NULL PRIMARY KEY,
  subject    text   NOT NULL CHECK (subject IN ('account', 'email')),
  note       text   NOT NULL,
  actor      text   NOT NULL,
  created_at bigint NOT NULL
);

-- How far upkeep has come that spans events, such as the comparison with the provider's books; a JSON object each.
CREATE TABLE progress (
  name       text   NOT NULL PRIMARY KEY,
  value      text   NOT NULL,
  updated_at bigint NOT NULL
);

-- What this installation signs with.
CREATE TABLE secrets (
  name       text   NOT NULL PRIMARY KEY,
  value      bytea  NOT NULL,
  created_at bigint NOT NULL
);

-- Other systems that are told what happens. What is deleted stays for a while as a name, so that no process takes it for one that it
-- has not heard of yet.
CREATE TABLE webhook_endpoints (
  endpoint_id     uuid    NOT NULL PRIMARY KEY,
  url             text    NOT NULL,
  types           text    NOT NULL, -- JSON list of the types of messages it wants
  secret          bytea   NOT NULL,
  -- Until then messages are signed with this one too.
  secret_before   bytea,
  signed_until    bigint,
  status          text    NOT NULL CHECK (status IN ('ENABLED', 'DISABLED', 'DELETED')),
  created_at      bigint  NOT NULL,
  enabled_at      bigint  NOT NULL,
  disabled_at     bigint,
  disabled_reason text,
  CHECK ((status = 'ENABLED') = (disabled_at IS NULL)),
  CHECK ((secret_before IS NULL) = (signed_until IS NULL))
);

-- How far each of them has an event's log: up to here it is known what there is to tell, and kept as deliveries.
CREATE TABLE webhook_progress (
  event_no    integer NOT NULL,
  endpoint_id uuid    NOT NULL,
  types       text    NOT NULL,
  started     bigint  NOT NULL CHECK (started >= 0),
  version     bigint  NOT NULL,
  -- Deliveries that were done long ago and are no longer kept.
  forgotten   bigint  NOT NULL CHECK (forgotten >= 0),
  PRIMARY KEY (event_no, endpoint_id),
  CHECK (version >= started)
);

-- What is to be told: one entry of an event's log, to one endpoint. Those of one subject are told in order.
CREATE TABLE webhook_deliveries (
  event_no    integer NOT NULL,
  endpoint_id uuid    NOT NULL,
  version     bigint  NOT NULL,
  message_id  uuid    NOT NULL UNIQUE,
  subject     uuid    NOT NULL,
  at          bigint  NOT NULL,
  status      text    NOT NULL CHECK (status IN ('PENDING', 'DELIVERED', 'FAILED')),
  tries       bigint  NOT NULL CHECK (tries >= 0),
  due_at      bigint  NOT NULL,
  updated_at  bigint  NOT NULL,
  last_status integer NOT NULL, -- of the last answer; 0 for none
  last_error  text    NOT NULL,
  PRIMARY KEY (event_no, endpoint_id, version)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at) WHERE status = 'PENDING';
CREATE INDEX webhook_deliveries_ahead ON webhook_deliveries (event_no, endpoint_id, subject, version) WHERE status <> 'DELIVERED';
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (endpoint_id, at) WHERE status <> 'DELIVERED';
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (endpoint_id, updated_at) WHERE status = 'FAILED';
CREATE INDEX webhook_deliveries_done ON webhook_deliveries (updated_at) WHERE status = 'DELIVERED';
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (endpoint_id, at);

-- Which batches are done. A batch whose commit was not answered is looked up here; when it isn't found it is entered as not
-- applied, and can then never be.
CREATE TABLE batches (
  batch_id uuid     NOT NULL PRIMARY KEY,
  applied  smallint NOT NULL CHECK (applied IN (0, 1)),
  at       bigint   NOT NULL
);
CREATE INDEX batches_age ON batches (at);

-- Where each event is at home, as this database knows it; read in the main home alone.
CREATE TABLE directory (
  event_no  integer NOT NULL PRIMARY KEY,
  home      text    NOT NULL,
  -- The home it is on its way to.
  moving_to text,
  epoch     bigint  NOT NULL
);
