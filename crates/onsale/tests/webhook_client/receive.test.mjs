// Receives the webhooks of a running server with the standard's own library. What passes here, everybody's receiver takes.
//
//   BUYERS=127.0.0.1:PORT OPERATORS=127.0.0.1:PORT OPERATOR_KEY=osk_... node --test
//
// The server runs in test mode.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

const { BUYERS, OPERATORS, OPERATOR_KEY } = process.env;
assert.ok(BUYERS && OPERATORS && OPERATOR_KEY, 'BUYERS, OPERATORS and OPERATOR_KEY must be set');

let receiver;
let received = [];

before(async () => {
  receiver = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ headers: request.headers, body: Buffer.concat(chunks).toString('utf8') });
    response.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
});

after(() => {
  receiver.closeAllConnections();
  receiver.close();
});

async function call(method, address, path, { token = OPERATOR_KEY, type = 'application/json', body, key } = {}) {
  const headers = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers['content-type'] = type;
  if (key) headers['idempotency-key'] = randomUUID();
  const payload = typeof body === 'object' ? JSON.stringify(body) : body;
  const response = await fetch(`http://${address}${path}`, { method, headers, body: payload });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

const operator = (method, path, options) => call(method, OPERATORS, path, options);
const worker = (name) => operator('POST', `/_test/workers/${name}`, { body: {} });

async function hall(seats) {
  const { event_id } = await operator('POST', '/v1/events', {
    body: { name: 'An evening', currency: 'EUR', starts_at: '2030-05-01T19:30:00Z' },
  });
  const path = `/v1/events/${event_id}`;
  const rows = seats.map((seat, index) => `${seat},A,1,${index + 1},Stalls`);
  const csv = ['seat_id,section,row,seat,category', ...rows, ''].join('\n');
  await operator('PUT', `${path}/manifest`, { type: 'text/csv', body: csv });
  await operator('PUT', `${path}/prices`, { body: { price_levels: [{ price_level: 'Stalls', amount_minor: 2500 }] } });
  await operator('PUT', `${path}/on-sale`, { body: { state: 'open' } });
  return path;
}

async function sell(path, seat) {
  const { session_token: token } = await call('POST', BUYERS, '/v1/sessions');
  const hold = await call('POST', BUYERS, `${path}/holds`, { token, key: true, body: { seats: [seat] } });
  const body = { payment_method_token: 'pm_card_visa' };
  const { order_id } = await call('POST', BUYERS, `/v1/holds/${hold.hold_id}/checkout`, { token, key: true, body });
  await worker('payments');
  await worker('payments');
  received = [];
  await worker('dispatcher');
  return order_id;
}

test('the library takes what is sent, and nothing that was changed on the way', async () => {
  const url = `http://127.0.0.1:${receiver.address().port}/hook`;
  const endpoint = await operator('POST', '/v1/webhook-endpoints', {
    body: { url, types: ['order.confirmed', 'payment.captured'] },
  });
  const path = await hall(['A-1', 'A-2']);
  const order = await sell(path, 'A-1');
  const first = new Webhook(endpoint.secret);
  const messages = received.map(({ body, headers }) => first.verify(body, headers));
  assert.deepEqual(messages.map(({ type }) => type), ['order.confirmed', 'payment.captured']);
  for (const { data, timestamp } of messages) {
    assert.equal(data.order_id, order);
    assert.ok(!Number.isNaN(Date.parse(timestamp)));
  }
  const [{ body, headers }] = received;
  const refused = (body, headers, webhook = first) =>
    assert.throws(() => webhook.verify(body, headers), WebhookVerificationError);
  refused(body.replace('order.confirmed', 'order.cancelled'), headers);
  refused(body, { ...headers, 'webhook-id': 'msg_00000000000000000000000001' });
  refused(body, { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) });
  refused(body, headers, new Webhook('whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'));

  // While a secret is being changed, both are good.
  const { secret } = await operator('POST', `/v1/webhook-endpoints/${endpoint.endpoint_id}/secret`, { body: {} });
  assert.notEqual(secret, endpoint.secret);
  await sell(path, 'A-2');
  assert.equal(received.length, 2);
  for (const { body, headers } of received) {
    assert.deepEqual(first.verify(body, headers), new Webhook(secret).verify(body, headers));
  }
});
