// Drives a running payment simulator with the provider's own client. What passes here, the real client understands.
//
//   SIMULATOR=127.0.0.1:PORT [WEBHOOK_SECRET=whsec_...] node --test
//
// The secret is the one the simulator signs with; it is `whsec_test` when not given.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import Stripe from 'stripe';

const address = process.env.SIMULATOR;
assert.ok(address, 'SIMULATOR must be set to the HOST:PORT of a running simulator');
const secret = process.env.WEBHOOK_SECRET ?? 'whsec_test';
const [host, port] = address.split(':');

// No retries by the client on a 409 or a 500: each must be seen.
const stripe = new Stripe('sk_test_drive', { host, port, protocol: 'http', maxNetworkRetries: 0 });

let receiver;
const waiting = []; // predicates with their resolvers
const deliveries = []; // what nobody waited for yet

before(async () => {
  receiver = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const delivery = { body };
    try {
      delivery.event = stripe.webhooks.constructEvent(body, request.headers['stripe-signature'], secret);
    } catch (error) {
      delivery.refusal = error;
      delivery.event = JSON.parse(body);
    }
    response.writeHead(delivery.refusal ? 400 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ outcome: delivery.refusal ? 'refused' : 'applied' }));
    const at = waiting.findIndex(({ wanted }) => wanted(delivery));
    if (at >= 0) waiting.splice(at, 1)[0].resolve(delivery);
    else deliveries.push(delivery);
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  await control('webhooks', { url: `http://127.0.0.1:${receiver.address().port}/hook`, mode: 'normal' });
});

after(async () => {
  await control('webhooks', { mode: 'off' });
  receiver.closeAllConnections();
  receiver.close();
});

beforeEach(() => control('webhooks', { mode: 'normal' }));

async function control(path, body) {
  const response = await fetch(`http://${address}/_sim/${path}`, {
    method: body ? 'POST' : 'GET',
    body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  assert.equal(response.status, 200, `${path}: ${JSON.stringify(answer)}`);
  return answer;
}

/** The delivery of this type about this intent, whether it has come or is still to come. */
function delivered(type, intent) {
  const wanted = ({ event }) => {
    const { id, payment_intent } = event.data.object;
    return event.type === type && (payment_intent ?? id) === intent.id;
  };
  const at = deliveries.findIndex(wanted);
  if (at >= 0) return Promise.resolve(deliveries.splice(at, 1)[0]);
  return new Promise((resolve) => waiting.push({ wanted, resolve }));
}

/** What a create asks, for an order of its own. */
function asked(more = {}) {
  return {
    amount: 4250,
    currency: 'eur',
    capture_method: 'manual',
    payment_method_types: ['card'],
    metadata: { order_id: `ord_${randomUUID()}` },
    ...more,
  };
}

/** Makes an intent and confirms it with this payment method. */
async function authorized(payment_method = 'pm_card_visa', more = {}) {
  const intent = await stripe.paymentIntents.create(asked(more));
  return stripe.paymentIntents.confirm(intent.id, { payment_method });
}

test('create, then confirm, sets the money aside', async () => {
  const params = asked({ description: 'Seats A-1 and A-2' });
  const created = await stripe.paymentIntents.create(params);
  assert.equal(created.object, 'payment_intent');
  assert.equal(created.status, 'requires_payment_method');
  assert.equal(created.livemode, false);
  assert.equal(created.latest_charge, null);
  assert.match(created.client_secret, new RegExp(`^${created.id}_secret_`));
  assert.deepEqual(created.metadata, params.metadata);
  assert.match(created.lastResponse.requestId, /^req_/);

  const confirmed = await stripe.paymentIntents.confirm(created.id, { payment_method: 'pm_card_visa' });
  assert.equal(confirmed.status, 'requires_capture');
  assert.equal(confirmed.amount_capturable, 4250);
  assert.equal(confirmed.amount_received, 0);
  assert.deepEqual(await stripe.paymentIntents.retrieve(created.id), confirmed);

  const { event } = await delivered('payment_intent.amount_capturable_updated', created);
  assert.equal(event.data.object.status, 'requires_capture');
});

test('a declined card is a 402 with the intent in it, and another may be tried', async () => {
  const intent = await stripe.paymentIntents.create(asked());
  const table = [
    ['pm_card_chargeDeclined', 'card_declined', 'generic_decline'],
    ['pm_card_chargeDeclinedInsufficientFunds', 'card_declined', 'insufficient_funds'],
    ['tok_chargeDeclinedExpiredCard', 'expired_card', 'expired_card'],
  ];
  for (const [payment_method, code, decline_code] of table) {
    await assert.rejects(stripe.paymentIntents.confirm(intent.id, { payment_method }), (error) => {
      assert.ok(error instanceof Stripe.errors.StripeCardError);
      assert.deepEqual([error.statusCode, error.code, error.decline_code], [402, code, decline_code]);
      assert.equal(error.payment_intent.status, 'requires_payment_method');
      assert.equal(error.payment_intent.last_payment_error.code, code);
      return true;
    });
    await delivered('payment_intent.payment_failed', intent);
  }
  const paid = await stripe.paymentIntents.confirm(intent.id, { payment_method: 'tok_visa' });
  assert.equal(paid.status, 'requires_capture');
  assert.equal(paid.last_payment_error, null);
});

test('extra authentication, finished and abandoned', async () => {
  const intent = await stripe.paymentIntents.create(asked());
  const params = { payment_method: 'pm_card_authenticationRequired', return_url: 'http://shop.example/back' };
  const open = await stripe.paymentIntents.confirm(intent.id, params);
  assert.equal(open.status, 'requires_action');
  assert.equal(open.next_action.type, 'redirect_to_url');
  assert.equal(open.next_action.redirect_to_url.return_url, 'http://shop.example/back');
  await delivered('payment_intent.requires_action', open);

  await control(`intents/${open.id}/complete`, { result: 'failure' });
  const failed = await stripe.paymentIntents.retrieve(open.id);
  assert.equal(failed.status, 'requires_payment_method');
  assert.equal(failed.last_payment_error.code, 'payment_intent_authentication_failure');
  await delivered('payment_intent.payment_failed', open);

  await stripe.paymentIntents.confirm(intent.id, { payment_method: 'pm_card_threeDSecure2Required' });
  await control(`intents/${open.id}/complete`, { result: 'success' });
  const paid = await stripe.paymentIntents.retrieve(open.id);
  assert.equal(paid.status, 'requires_capture');
  assert.equal(paid.next_action, null);
  await delivered('payment_intent.amount_capturable_updated', open);
});

test('manual capture takes what was set aside, or a part of it', async () => {
  const whole = await authorized();
  const captured = await stripe.paymentIntents.capture(whole.id);
  assert.equal(captured.status, 'succeeded');
  assert.deepEqual([captured.amount_received, captured.amount_capturable], [4250, 0]);
  await delivered('payment_intent.succeeded', whole);

  const part = await authorized();
  await assert.rejects(stripe.paymentIntents.capture(part.id, { amount_to_capture: 4251 }), {
    statusCode: 400,
    code: 'amount_too_large',
  });
  const partial = await stripe.paymentIntents.capture(part.id, { amount_to_capture: 4000 });
  assert.equal(partial.amount_received, 4000);
  await assert.rejects(stripe.paymentIntents.capture(part.id), {
    statusCode: 400,
    code: 'payment_intent_unexpected_state',
  });
  const { orders } = await control('ledger');
  assert.deepEqual(
    orders.find(({ order_id }) => order_id === part.metadata.order_id),
    { order_id: part.metadata.order_id, currency: 'EUR', authorised: 4250, captured: 4000, voided: 250, refunded: 0 },
  );
});

test('automatic capture takes the money at once', async () => {
  for (const capture_method of ['automatic', 'automatic_async']) {
    const paid = await stripe.paymentIntents.create(
      asked({ capture_method, payment_method: 'pm_card_visa', confirm: true }),
    );
    assert.deepEqual([paid.status, paid.amount_received], ['succeeded', 4250]);
    await delivered('payment_intent.succeeded', paid);
  }
});

test('cancel lets the money go', async () => {
  const intent = await authorized();
  const canceled = await stripe.paymentIntents.cancel(intent.id, { cancellation_reason: 'abandoned' });
  assert.equal(canceled.status, 'canceled');
  assert.equal(canceled.cancellation_reason, 'abandoned');
  assert.equal(canceled.amount_capturable, 0);
  assert.ok(canceled.canceled_at >= canceled.created);
  await delivered('payment_intent.canceled', intent);
  await assert.rejects(stripe.paymentIntents.capture(intent.id), (error) => {
    assert.equal(error.code, 'payment_intent_unexpected_state');
    assert.equal(error.payment_intent.status, 'canceled');
    return true;
  });
});

test('refunds show on the charge', async () => {
  const intent = await authorized('pm_card_visa', { capture_method: 'automatic' });
  const first = await stripe.refunds.create({
    payment_intent: intent.id,
    amount: 1000,
    reason: 'requested_by_customer',
    metadata: { operation_id: 'op_1' },
  });
  assert.deepEqual([first.object, first.status, first.amount, first.currency], ['refund', 'succeeded', 1000, 'eur']);
  assert.deepEqual(first.metadata, { operation_id: 'op_1' });
  const { event } = await delivered('charge.refunded', intent);
  assert.equal(event.data.object.amount_refunded, 1000);
  assert.deepEqual(event.data.object.metadata, intent.metadata);

  const rest = await stripe.refunds.create({ payment_intent: intent.id });
  assert.equal(rest.amount, 3250);
  await assert.rejects(stripe.refunds.create({ payment_intent: intent.id }), { code: 'charge_already_refunded' });
  const list = await stripe.refunds.list({ payment_intent: intent.id });
  assert.deepEqual(list.data.map(({ id }) => id), [rest.id, first.id]);

  const bare = await stripe.paymentIntents.retrieve(intent.id);
  const expanded = await stripe.paymentIntents.retrieve(intent.id, { expand: ['latest_charge'] });
  assert.equal(bare.latest_charge, expanded.latest_charge.id);
  assert.equal(expanded.latest_charge.amount_refunded, 4250);
  assert.equal(expanded.latest_charge.refunded, true);
});

test('the balance has an entry for what was taken and what was given back, with fees', async () => {
  const intent = await authorized();
  await stripe.paymentIntents.capture(intent.id);
  const refund = await stripe.refunds.create({ payment_intent: intent.id, amount: 1000, metadata: { operation_id: 'op_2' } });
  const { data } = await stripe.balanceTransactions.list({ limit: 2, expand: ['data.source'] });
  const [back, taken] = data;
  assert.deepEqual([taken.object, taken.type, taken.reporting_category], ['balance_transaction', 'charge', 'charge']);
  // 1.5 % of 4250 is 63.75, and 25.
  assert.deepEqual([taken.amount, taken.fee, taken.net, taken.currency], [4250, 89, 4161, 'eur']);
  assert.deepEqual(taken.fee_details.map(({ amount, type }) => [amount, type]), [[89, 'stripe_fee']]);
  assert.ok(taken.available_on > taken.created);
  assert.deepEqual([taken.source.payment_intent, taken.source.metadata], [intent.id, intent.metadata]);
  assert.deepEqual([back.type, back.amount, back.fee, back.net], ['refund', -1000, 0, -1000]);
  assert.deepEqual([back.source.id, back.source.payment_intent], [refund.id, intent.id]);
  assert.deepEqual(back.source.metadata, { operation_id: 'op_2' });

  const bare = await stripe.balanceTransactions.list({ limit: 1 });
  assert.deepEqual([bare.data[0].source, bare.has_more], [refund.id, true]);
  const next = await stripe.balanceTransactions.list({ limit: 1, starting_after: back.id });
  assert.equal(next.data[0].id, taken.id);
  const future = await stripe.balanceTransactions.list({ created: { gte: taken.created + 3600 } });
  assert.deepEqual(future.data, []);
});

test('lists are newest first, paged, and cut by time', async () => {
  const made = [];
  for (let i = 0; i < 5; i += 1) made.push((await stripe.paymentIntents.create(asked())).id);
  made.reverse();
  const page = await stripe.paymentIntents.list({ limit: 2 });
  assert.equal(page.has_more, true);
  assert.deepEqual(page.data.map(({ id }) => id), made.slice(0, 2));
  const walked = [];
  for await (const intent of stripe.paymentIntents.list({ limit: 2, expand: ['data.latest_charge'] })) {
    walked.push(intent.id);
    if (walked.length === 5) break;
  }
  assert.deepEqual(walked, made);
  const now = Math.floor(Date.now() / 1000);
  const future = await stripe.paymentIntents.list({ created: { gte: now + 3600 } });
  assert.deepEqual([future.data, future.has_more], [[], false]);
  const recent = await stripe.paymentIntents.list({ created: { gte: now - 3600, lt: now + 3600 }, limit: 5 });
  assert.deepEqual(recent.data.map(({ id }) => id), made);
});

test('an idempotency key gives the first answer again, to the same parameters only', async () => {
  const params = asked();
  const idempotencyKey = randomUUID();
  const first = await stripe.paymentIntents.create(params, { idempotencyKey });
  assert.equal(first.lastResponse.headers['idempotent-replayed'], undefined);
  const again = await stripe.paymentIntents.create(params, { idempotencyKey });
  assert.equal(again.lastResponse.headers['idempotent-replayed'], 'true');
  assert.deepEqual(again, first);
  await assert.rejects(stripe.paymentIntents.create({ ...params, amount: 1 }, { idempotencyKey }), (error) => {
    assert.ok(error instanceof Stripe.errors.StripeIdempotencyError);
    assert.equal(error.statusCode, 400);
    return true;
  });

  // A decline is kept as well; a request that was refused unread is not.
  const declined = { payment_method: 'pm_card_chargeDeclined' };
  const confirmKey = { idempotencyKey: randomUUID() };
  const confirm = () => stripe.paymentIntents.confirm(first.id, declined, confirmKey);
  await assert.rejects(confirm(), { statusCode: 402 });
  await assert.rejects(confirm(), (error) => error.headers['idempotent-replayed'] === 'true');
  const otherKey = { idempotencyKey: randomUUID() };
  await assert.rejects(stripe.paymentIntents.create(asked({ amount: 0 }), otherKey), {
    statusCode: 400,
    param: 'amount',
  });
  await stripe.paymentIntents.create(params, otherKey);
});

test('a key whose request still runs is in use', async () => {
  const intent = await stripe.paymentIntents.create(asked());
  const idempotencyKey = randomUUID();
  const confirm = () =>
    stripe.paymentIntents.confirm(intent.id, { payment_method: 'pm_card_visa' }, { idempotencyKey });
  await control('script', { operation: 'authorize', outcomes: ['delay:1000'] });
  const slow = confirm();
  for (let seen = false; !seen; ) {
    const { entries } = await control('log');
    seen = entries.some((entry) => entry.idempotency_key === idempotencyKey);
  }
  await assert.rejects(confirm(), { statusCode: 409, code: 'idempotency_key_in_use' });
  assert.equal((await slow).status, 'requires_capture');
});

test('scripted faults: lost requests, a lost answer and a 500 that was done', async () => {
  const intent = await stripe.paymentIntents.create(asked());
  const options = { idempotencyKey: randomUUID() };
  const confirm = () => stripe.paymentIntents.confirm(intent.id, { payment_method: 'pm_card_visa' }, options);
  // The client asks once more by itself when a connection breaks, even told to make no retries.
  await control('script', { operation: 'authorize', outcomes: ['lost_request', 'lost_request', 'lost_reply'] });
  await assert.rejects(confirm(), (error) => error instanceof Stripe.errors.StripeConnectionError);
  const replayed = await confirm();
  assert.equal(replayed.status, 'requires_capture');
  assert.equal(replayed.lastResponse.headers['idempotent-replayed'], 'true');

  const captureKey = { idempotencyKey: randomUUID() };
  await control('script', { operation: 'capture', outcomes: ['error_500_done'] });
  await assert.rejects(stripe.paymentIntents.capture(intent.id, {}, captureKey), { statusCode: 500 });
  assert.equal((await stripe.paymentIntents.capture(intent.id, {}, captureKey)).status, 'succeeded');

  const { entries } = await control('log');
  const mine = entries.filter(({ order_id }) => order_id === intent.metadata.order_id);
  assert.deepEqual(
    mine.map(({ operation, outcome }) => `${operation} ${outcome}`),
    [
      'authorize lost_request',
      'authorize lost_request',
      'authorize lost_reply',
      'authorize replayed',
      'capture error_500_done',
      'capture replayed',
    ],
  );
});

test('webhooks are verified by the client, and a forged one is refused', async () => {
  const paid = await authorized();
  const { event, refusal } = await delivered('payment_intent.amount_capturable_updated', paid);
  assert.equal(refusal, undefined);
  const read = await stripe.events.retrieve(event.id);
  assert.deepEqual([read.id, read.type, read.data], [event.id, event.type, event.data]);

  await control('webhooks', { mode: 'bad_signature' });
  const other = await authorized();
  const forged = await delivered('payment_intent.amount_capturable_updated', other);
  assert.ok(forged.refusal instanceof Stripe.errors.StripeSignatureVerificationError);

  await control('webhooks', { mode: 'off' });
  const canceled = await stripe.paymentIntents.cancel(other.id);
  const report = await control('deliver', { order_id: other.metadata.order_id, type: 'payment_intent.canceled' });
  const told = await delivered('payment_intent.canceled', canceled);
  assert.equal(told.refusal, undefined);
  assert.deepEqual(report.deliveries, [
    { event_id: told.event.id, type: 'payment_intent.canceled', status: 200, body: { outcome: 'applied' } },
  ]);
});

test('no key, a strange key, and a strange payment method', async () => {
  const response = await fetch(`http://${address}/v1/payment_intents`);
  assert.equal(response.status, 401);
  const stranger = new Stripe('pk_test_drive', { host, port, protocol: 'http', maxNetworkRetries: 0 });
  await assert.rejects(stranger.paymentIntents.list(), (error) => {
    assert.ok(error instanceof Stripe.errors.StripeAuthenticationError);
    return true;
  });
  await assert.rejects(stripe.paymentIntents.create(asked({ payment_method: 'visa' })), {
    statusCode: 400,
    code: 'resource_missing',
    param: 'payment_method',
  });
  await assert.rejects(stripe.paymentIntents.retrieve('pi_nobody'), { statusCode: 404, code: 'resource_missing' });
});
