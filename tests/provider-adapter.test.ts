import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import fc from 'fast-check'
import type { ErrorCode } from '../catalog/errors.ts'
import { Problem } from '../server/problem.ts'
import { createAdapter } from '../server/provider/adapter.ts'
import { refusals } from '../server/provider/adapter/refusals.ts'
import { lookUp, outcomeUnknown, type Outgoing, type Provider } from '../server/provider/port.ts'
import { type Answer, type Peer, startPeer } from './peer.ts'
import { type Exchange, exchange, exchanges, recorded, seasonSale } from './recorded.ts'

const TOKEN = 'EAAGtoken0123456789secret'
const from = { phoneNumberId: recorded.phone }
const signal = new AbortController().signal
const text: Outgoing = { to: '16315551234', reference: 'msg_01J...', body: { type: 'text', text: { body: 'Hi' } } }
const small = { bytes: Buffer.from('0123456789'), contentType: 'image/png', fileName: 'small.png' }

let peer: Peer
let provider: Provider
const adapter = (more: Partial<Parameters<typeof createAdapter>[0]> = {}): Provider =>
  createAdapter({ baseUrl: `${peer.url}/base`, version: recorded.version, token: TOKEN, appId: '77', ...more })

before(async () => {
  peer = await startPeer()
  provider = adapter()
})
after(async () => await peer.close())
beforeEach(() => {
  peer.asked.length = 0
  peer.answers.length = 0
})

const say = (...answers: Answer[]): void => { peer.answers.push(...answers) }
const ok = (body: unknown): Answer => ({ body })
const refusal = (code: unknown, more: Record<string, unknown> = {}, status = 400, headers: Record<string, string> = {}): Answer =>
  ({ status, headers, body: { error: { message: `(#${String(code)}) No`, type: 'OAuthException', code, ...more } } })

const problemOf = async (call: Promise<unknown>): Promise<Problem> => {
  const problem = await call.then((value) => assert.fail(`no problem, but ${JSON.stringify(value)}`), (error: unknown) => error)
  assert.ok(problem instanceof Problem, `not a problem: ${String(problem)}`)
  return problem
}
const shown = (problem: Problem) => [problem.code, problem.extras.reason, outcomeUnknown(problem)]
const send = (): Promise<unknown> => provider.send(from, text, signal)
const bodies = () => peer.asked.map(({ body }) => body.length === 0 ? undefined : JSON.parse(body.toString()))

describe('Recorded exchanges with the provider', () => {
  const hi = { message: 'Hi! I\'m interested in your products. Can you help me?', qrFormat: 'SVG' as const }
  const latest = 'Hello! I\'d like to know more about your latest offers.'
  const callback = { url: 'https://crm.example.com/provider/webhook', verifyToken: 'T' }
  const duplicate = { data: [{ id: '5', name: 'season_sale', language: 'en_US', status: 'APPROVED' }] }
  type Played = { call: () => Promise<unknown>; gives?: unknown; refuses?: [ErrorCode, string | undefined, boolean]; then?: Answer[] }
  const played: Record<string, Played> = {
    'A1 create': { call: () => provider.createLink(from, hi, signal), gives: { code: 'ANED2T5QRU7HG1', message: hi.message, url: 'https://wa.me/message/ANED2T5QRU7HG1', qrImageUrl: 'https://scontent.../m1/v/t6/An-...' } },
    'A1 too long': { call: () => provider.createLink(from, hi, signal), refuses: ['upstream_error', 'provider_refused', false] },
    'A1 bad token': { call: () => provider.createLink(from, hi, signal), refuses: ['upstream_error', 'provider_access', false] },
    'A1 no permission': { call: () => provider.createLink(from, hi, signal), refuses: ['upstream_error', 'provider_access', false] },
    'A1 no such number': { call: () => provider.createLink(from, hi, signal), refuses: ['upstream_error', 'provider_not_found', false] },
    'A1 throttled': { call: () => provider.createLink(from, hi, signal), refuses: ['upstream_unavailable', 'throttled', false] },
    'A1 fault': { call: () => provider.createLink(from, hi, signal), refuses: ['upstream_unavailable', undefined, true] },
    'A1 update': {
      call: () => provider.updateLink(from, { code: 'ANED2T5QRU7HG1', message: latest }, signal),
      gives: { code: 'ANED2T5QRU7HG1', message: latest, url: 'https://wa.me/message/ANED2T5QRU7HG1', qrImageUrl: null },
    },
    'A2 list': {
      call: () => provider.listLinks(from, signal),
      gives: [{ code: '5QBPAD2DC6L5A1', message: 'Show me Cyber Tuesday deals!', url: 'https://wa.me/message/5QBPAD2DC6L5A1', qrImageUrl: null }],
    },
    'A2 empty': { call: () => provider.listLinks(from, signal), gives: [] },
    'A3 create': { call: () => provider.createTemplate(recorded.account, seasonSale, signal), gives: { id: '1689556908129832', status: 'PENDING', category: 'UTILITY' } },
    'A3 exists': { call: () => provider.createTemplate(recorded.account, seasonSale, signal), then: [ok(duplicate)], refuses: ['conflict', 'duplicate', false] },
    'A4 delete': { call: () => provider.deleteTemplate(recorded.account, { name: 'season_sale', id: '1689556908129832' }, signal), gives: undefined },
    'A5 archive': {
      call: () => provider.archiveTemplates(recorded.account, ['1689556908129832', '42'], signal),
      gives: { archived: ['1689556908129832'], failed: { 42: 'Only approved or rejected templates can be archived' } },
    },
    'A6 phone numbers': {
      call: () => provider.phoneNumbers(recorded.account, signal),
      gives: [{ id: '1906385232743451', displayPhoneNumber: '+1 631-555-5555', verifiedName: 'Jasper\'s Market', status: 'LINKED', qualityRating: 'GREEN' }],
    },
    'A7 subscribe': { call: () => provider.subscribe(recorded.account, undefined, signal), gives: undefined },
    'A7 subscribe elsewhere': { call: () => provider.subscribe(recorded.account, callback, signal), gives: undefined },
    'A7 unreachable': { call: () => provider.subscribe(recorded.account, callback, signal), refuses: ['upstream_error', 'provider_refused', false] },
    'A8 send': { call: send, gives: { id: 'wamid.HBgLMTYz...' } },
    '2.8 no such template': {
      call: () => provider.send(from, { to: '16315551234', reference: 'msg_01K...', body: { type: 'template', template: { name: 'x', language: { code: 'en_US' } } } }, signal),
      refuses: ['invalid_input', 'template_unavailable', false],
    },
  }

  const assertAsked = ({ request }: Exchange): void => {
    const { method, path, query, headers, body } = peer.asked[0]!
    assert.deepEqual([method, path], [request.method, `/base/${request.unversioned ? '' : `${recorded.version}/`}${request.path}`])
    assert.equal(headers.authorization, `Bearer ${TOKEN}`)
    for (const [name, value] of Object.entries(request.query ?? {})) assert.equal(query[name], value)
    // Byte for byte, the order of members too.
    assert.equal(body.toString(), request.body === undefined ? '' : JSON.stringify(request.body))
    assert.equal(headers['content-type'], request.body === undefined ? undefined : 'application/json')
  }

  for (const { name, response } of exchanges) {
    it(name, async () => {
      const { call, gives, refuses, then = [] } = played[name] ?? assert.fail(`${name} is not played`)
      say({ status: response.status, body: response.body }, ...then)
      if (refuses) assert.deepEqual(shown(await problemOf(call())), refuses)
      else assert.deepEqual(await call(), gives)
      assertAsked(exchange(name))
      assert.equal(peer.asked.length, 1 + then.length, 'asked once and never again')
    })
  }
})

describe('Messages to the provider', () => {
  const sent = ok({ messages: [{ id: 'wamid.1' }] })
  const envelope = { messaging_product: 'whatsapp', recipient_type: 'individual' }
  const cases: { name: string; message: Outgoing; body: Record<string, unknown> }[] = [
    { name: 'an answer', message: { ...text, replyTo: 'wamid.0' }, body: { ...envelope, to: '16315551234', context: { message_id: 'wamid.0' }, type: 'text', text: { body: 'Hi' } } },
    { name: 'to someone without a number', message: { recipient: 'US.13491208655302741918', reference: 'r', body: text.body }, body: { ...envelope, recipient: 'US.13491208655302741918', type: 'text', text: { body: 'Hi' } } },
    ...[
      { type: 'image', image: { link: 'https://example.com/a.png', caption: 'A' } },
      { type: 'document', document: { id: '5', filename: 'a.pdf' } },
      { type: 'interactive', interactive: { type: 'button', body: { text: 'Which?' }, action: { buttons: [] } } },
      { type: 'reaction', reaction: { message_id: 'wamid.0', emoji: '👍' } },
      { type: 'template', template: { name: 'hello', language: { code: 'en_US' }, components: [] } },
    ].map((body) => ({ name: `of the type ${body.type}`, message: { to: '1', reference: 'r', body }, body: { ...envelope, to: '1', ...body } })),
  ]
  for (const { name, message, body } of cases) {
    it(name, async () => {
      say(sent)
      assert.deepEqual(await provider.send(from, message, signal), { id: 'wamid.1' })
      assert.deepEqual(bodies(), [{ ...body, biz_opaque_callback_data: message.reference }])
    })
  }

  it('are found by their reference where the provider can be asked', async () => {
    say(ok({ data: [{ id: 'wamid.1' }] }), ok({ data: [] }))
    assert.deepEqual(await provider.findSent(from, 'msg_1', signal), { id: 'wamid.1' })
    assert.equal(await provider.findSent(from, 'msg_1', signal), 'absent')
    assert.deepEqual(peer.asked.map(({ method, path, query }) => [method, path, query]), Array(2).fill(['GET', `/base/v23.0/${recorded.phone}/messages`, { biz_opaque_callback_data: 'msg_1' }]))
  })

  it('are unknown where it refuses to be asked, or answers something else', async () => {
    for (const answer of [refusal(100, { error_subcode: 33 }), refusal(190, {}, 401), { status: 404, body: '<html>' }, ok({ data: [{ id: 'a' }, { id: 'b' }] }), ok({ messages: [] }), ok('')]) {
      say(answer)
      assert.equal(await provider.findSent(from, 'msg_1', signal), 'unknown', JSON.stringify(answer))
    }
  })

  it('may have been sent when nobody can be asked', async () => {
    for (const answer of [refusal(2, {}, 500), refusal(4, {}, 429), 'drop'] as Answer[]) {
      say(answer)
      assert.ok(outcomeUnknown(await problemOf(provider.findSent(from, 'msg_1', signal))), JSON.stringify(answer))
    }
  })
})

describe('Refusals of the provider', () => {
  // From the protocol notes: code, or code and subcode → what it becomes.
  const rows: [codes: (number | [number, number])[], becomes: ErrorCode, reason?: string, pointer?: string][] = [
    [[131047], 'window_closed'],
    [[[100, 2388023], [100, 2388024]], 'conflict', 'duplicate'],
    [[[100, 2388019]], 'upstream_error', 'template_limit'],
    [[[100, 2388043], [100, 2388047]], 'invalid_input', 'template_rules', '#/template/header'],
    [[[100, 2388072], [100, 2388293], [100, 2388299]], 'invalid_input', 'template_rules', '#/template/body'],
    [[[100, 2388073]], 'invalid_input', 'template_rules', '#/template/footer'],
    [[[100, 2388040]], 'invalid_input', 'template_rules', '#/template'],
    [[100, [100, 1]], 'upstream_error', 'provider_refused'],
    [[33, 803, [100, 33]], 'upstream_error', 'provider_not_found'],
    [[0, 3, 10, 190, 200, 299, 131005, [190, 463]], 'upstream_error', 'provider_access'],
    [[368, 130497, 131031, 131048, 131064], 'upstream_error', 'account_restricted'],
    [[131037, 131042, 131045, 133000, 133006, 133008, 133009, 133010, 133015, 134011], 'upstream_error', 'account_incomplete'],
    [[1, 2, 131000, 131016, 131057, 133004, 133005], 'upstream_unavailable'],
    [[4, 17, 32, 613, 80004, 80007, 80008, 130429, 131056, 133016, [4, 2446079]], 'upstream_unavailable', 'throttled'],
    [[132000, 132005, 132008, 132012, 132018], 'invalid_input', 'template_mismatch', '#/template'],
    [[132001, 132015, 132016, 132068, 132069, 131063], 'invalid_input', 'template_unavailable', '#/template'],
    [[132007], 'invalid_input', 'template_policy', '#/template'],
    [[131008, 131009, 131051], 'invalid_input', 'message_refused'],
    [[131052, 131053], 'invalid_input', 'media_refused'],
    [[131021, 131062], 'invalid_input', 'recipient_refused'],
    [[131030], 'upstream_error', 'recipient_not_listed'],
    [[130472, 131026, 131049, 137000], 'upstream_error', 'undeliverable'],
    [[131050], 'upstream_error', 'marketing_stopped'],
    [[300, 999999, 135000, -1], 'upstream_error', 'provider_refused'],
  ]

  it('become these, whatever their HTTP status', async () => {
    for (const [codes, becomes, reason, pointer] of rows) {
      for (const given of codes) {
        const [code, subcode] = typeof given === 'number' ? [given] : given
        // Codes that nobody knows go by the status.
        for (const status of reason === 'provider_refused' ? [400] : [400, 429, 500]) {
          say(refusal(code, { ...(subcode === undefined ? {} : { error_subcode: subcode }), fbtrace_id: 'AbC-1_2' }, status))
          const problem = await problemOf(send())
          assert.deepEqual(shown(problem), [becomes, reason, becomes === 'upstream_unavailable' && reason === undefined], `${given} at ${status}`)
          assert.deepEqual([problem.extras.provider_code, problem.extras.provider_subcode, problem.extras.provider_trace_id], [code, subcode, 'AbC-1_2'])
          assert.deepEqual(problem.extras.errors?.map((e) => [e.pointer, e.code]), becomes === 'invalid_input' ? [[pointer, reason]] : undefined)
        }
      }
    }
  })

  it('are all tried above', () => {
    const tried = new Set(rows.flatMap(([codes]) => codes.map((given) => [given].flat().join('/'))))
    for (const { codes, subcodes } of refusals) {
      for (const code of codes.flat()) for (const subcode of subcodes ?? [undefined]) assert.ok(tried.has([code, subcode].filter((part) => part !== undefined).join('/')), `${code}/${subcode}`)
    }
  })

  it('without a known code go by the status, and only a refusal is believed to be one', async () => {
    const page = '<html><body>Bad Gateway</body></html>'
    const cases: [Answer, ReturnType<typeof shown>][] = [
      [{ status: 400, body: page }, ['upstream_error', 'provider_refused', false]],
      [{ status: 401, body: '' }, ['upstream_error', 'provider_access', false]],
      [{ status: 403, body: page }, ['upstream_error', 'provider_access', false]],
      [{ status: 408, body: page }, ['timeout', undefined, true]],
      [{ status: 429, body: page }, ['upstream_unavailable', 'throttled', false]],
      [{ status: 500, body: page }, ['upstream_unavailable', undefined, true]],
      [{ status: 502, body: page }, ['upstream_unavailable', undefined, true]],
      [{ status: 503, body: { error: 'no' } }, ['upstream_unavailable', undefined, true]],
      [refusal(987654, {}, 500), ['upstream_unavailable', undefined, true]],
      [refusal(987654, { is_transient: true }), ['upstream_unavailable', undefined, true]],
      [refusal('100', {}), ['upstream_error', 'provider_refused', false]],
      [refusal(987654, {}, 200), ['upstream_unavailable', undefined, true]],
      [refusal(132000, {}, 200), ['invalid_input', 'template_mismatch', false]],
      [{ status: 302, headers: { Location: `${peer.url}/elsewhere` }, body: '' }, ['upstream_error', 'provider_refused', false]],
      [{ status: 200, body: page }, ['upstream_unavailable', undefined, true]],
      [{ status: 200, body: '{"messages":[{"id":"wami' }, ['upstream_unavailable', undefined, true]],
      [{ status: 200, body: { messages: [] } }, ['upstream_unavailable', undefined, true]],
      [{ status: 204 }, ['upstream_unavailable', undefined, true]],
      [{ status: 200, body: `"${'x'.repeat(9 * 1024 * 1024)}"` }, ['upstream_unavailable', undefined, true]],
    ]
    for (const [answer, expected] of cases) {
      peer.asked.length = 0
      say(answer)
      assert.deepEqual(shown(await problemOf(send())), expected, JSON.stringify(answer).slice(0, 100))
      assert.equal(peer.asked.length, 1)
    }
  })

  it('say why, without phone numbers, ids of people and the token', async () => {
    const details: [unknown, string][] = [
      [{ error_data: { details: 'Recipient +1 (631) 555-1234 is not on the list' } }, 'Recipient … is not on the list'],
      [{ error_data: { details: `Token ${TOKEN} of 16315551234, user US.13491208655302741918` } }, 'Token … of …, user US.…'],
      [{ error_user_title: 'Too long', error_user_msg: 'At most 1024 characters.' }, 'Too long: At most 1024 characters.'],
      [{ message: '(#100) Param to must be\n\u0000 set', error_data: { details: ' ' } }, 'Param to must be set'],
      [{ message: '٠١٢٣٤٥٦٧٨٩' }, '…'],
    ]
    for (const [more, expected] of details) {
      say(refusal(100, more as Record<string, unknown>))
      const problem = await problemOf(send())
      assert.equal(problem.message, `The provider does not take a parameter. The provider says: ${expected}`)
    }
    say(refusal(100, { message: `${'x'.repeat(5000)}${TOKEN}` }))
    assert.ok((await problemOf(send())).message.length < 400)
  })

  it('say when to come back', async () => {
    const usage = (...minutes: unknown[]) => ({ 'X-Business-Use-Case-Usage': JSON.stringify({ 5: minutes.map((m) => ({ type: 'messaging', call_count: 100, estimated_time_to_regain_access: m })) }) })
    const cases: [number, number, Record<string, string>, string | undefined][] = [
      [130429, 429, {}, '60'], [131056, 429, {}, '6'], [4, 429, { 'Retry-After': '90' }, '90'], [4, 429, usage(3), '180'], [4, 429, usage(0), '60'],
      [80008, 429, { 'Retry-After': '10', ...usage(1, 2) }, '120'], [4, 429, { 'Retry-After': 'soon' }, '60'], [4, 429, { 'Retry-After': '-5' }, '60'],
      [4, 429, { 'Retry-After': '999999999' }, '86400'], [4, 429, { 'X-Business-Use-Case-Usage': '{' }, '60'], [4, 429, { 'X-Business-Use-Case-Usage': 'null' }, '60'],
      [4, 429, usage('1', null, { a: 1 }), '60'], [2, 503, { 'Retry-After': '7' }, '7'], [2, 503, {}, undefined], [190, 401, { 'Retry-After': '7' }, undefined],
    ]
    for (const [code, status, headers, seconds] of cases) {
      say(refusal(code, {}, status, headers))
      assert.equal((await problemOf(send())).headers['Retry-After'], seconds, JSON.stringify(headers))
    }
    say(refusal(4, {}, 429, { 'Retry-After': new Date(Date.now() + 60_000).toUTCString() }))
    const wait = Number((await problemOf(send())).headers['Retry-After'])
    assert.ok(wait > 30 && wait <= 60, String(wait))
  })

  it('of a look-up tell nothing of the call it asks about', async () => {
    for (const answer of [refusal(190, {}, 401), refusal(4, {}, 429), refusal(131008)]) {
      say(answer)
      const problem = await problemOf(lookUp(provider.listLinks(from, signal)))
      assert.deepEqual(shown(problem), ['upstream_unavailable', undefined, true])
    }
  })
})

describe('A connection to the provider', () => {
  it('that breaks after the request leaves the outcome open', async () => {
    const broken: Answer[] = ['drop', (response) => { response.writeHead(200, { 'Content-Length': '500' }); response.write('{"messages"'); setImmediate(() => response.destroy()) }]
    for (const answer of broken) {
      say(answer)
      assert.deepEqual(shown(await problemOf(send())), ['timeout', undefined, true])
    }
    assert.equal(peer.asked.length, 2, 'nothing is sent twice')
  })

  it('that is too slow is given up', async () => {
    const slow: Answer[] = ['silent', (response) => { response.writeHead(200); response.write('{') }]
    for (const answer of slow) {
      say(answer)
      assert.deepEqual(shown(await problemOf(adapter({ timeoutMs: 100 }).send(from, text, signal))), ['timeout', undefined, true])
    }
    assert.equal(peer.asked.length, 2)
  })

  it('is given up when the caller gives up', async () => {
    const caller = new AbortController()
    say('silent')
    const call = problemOf(provider.send(from, text, caller.signal))
    caller.abort()
    assert.deepEqual(shown(await call), ['timeout', undefined, true])
    peer.asked.length = 0
    assert.deepEqual(shown(await problemOf(provider.send(from, text, caller.signal))), ['timeout', undefined, true])
    assert.deepEqual(peer.asked, [])
  })

  it('that was never made did nothing', async () => {
    const closed = await new Promise<string>((told) => {
      const server = createServer().listen(0, '127.0.0.1', () => {
        const address = server.address()
        server.close(() => told(`http://127.0.0.1:${typeof address === 'object' ? address!.port : 0}`))
      })
    })
    for (const baseUrl of [closed, 'http://no-such-name.invalid']) {
      const problem = await problemOf(adapter({ baseUrl }).send(from, text, signal))
      assert.deepEqual(shown(problem), ['upstream_unavailable', 'unreachable', false], baseUrl)
    }
  })

  it('goes nowhere an id could lead', async () => {
    for (const id of ['', '..', '.', '1/2', '1?x=', '1#', '%2e%2e', '1 2', 'a'.repeat(300)]) {
      assert.equal((await problemOf(provider.send({ phoneNumberId: id }, text, signal))).code, 'upstream_error')
      assert.equal((await problemOf(provider.deleteLink(from, id, signal))).code, 'upstream_error')
    }
    assert.deepEqual(peer.asked, [])
  })
})

describe('Lists of the provider', () => {
  const template = (n: number) => ({ id: n, name: n === 3 ? 'other_hello' : 'hello', language: `l${n}`, status: 'APPROVED', category: 'UTILITY', components: [], rejected_reason: n === 1 ? 'NONE' : 'SCAM', extra: true })
  const page = (rows: unknown[], afterCursor?: string, next = afterCursor) =>
    ok({ data: rows, paging: { cursors: { before: 'b', after: afterCursor ?? 'end' }, ...(next ? { next: `https://elsewhere.example/?access_token=${TOKEN}` } : {}) } })

  it('are read to the end by their cursors', async () => {
    say(page([template(1)], 'two'), page([], 'three'), page([template(2), template(3)]))
    const rows = await provider.listTemplates(recorded.account, undefined, signal)
    assert.deepEqual(rows.map(({ id, language, rejectedReason }) => [id, language, rejectedReason]), [['1', 'l1', null], ['2', 'l2', 'SCAM'], ['3', 'l3', 'SCAM']])
    assert.deepEqual(peer.asked.map(({ path, query }) => [path, query.after, query.limit]), [undefined, 'two', 'three'].map((cursor) => [`/base/v23.0/${recorded.account}/message_templates`, cursor, '100']))
  })

  it('hold the templates of a name alone, where it is asked for', async () => {
    say(page([template(1), template(2), template(3)]))
    assert.deepEqual((await provider.listTemplates(recorded.account, 'hello', signal)).map((t) => t.id), ['1', '2'])
    assert.equal(peer.asked[0]!.query.name, 'hello')
  })

  it('that go in circles or lack rows are no lists', async () => {
    for (const answers of [[page([], 'x'), page([], 'x')], [ok({ data: [], paging: { next: 'https://elsewhere.example' } })], [ok({ data: [{ id: '1' }] })], [ok({ data: {} })], [ok({ data: [], paging: 7 })]]) {
      say(...answers)
      assert.deepEqual(shown(await problemOf(provider.listTemplates(recorded.account, undefined, signal))), ['upstream_unavailable', undefined, true])
    }
    assert.deepEqual(peer.answers, [])
  })

  it('are asked for fewer fields where one is unknown', async () => {
    say(refusal(100, { message: '(#100) Tried accessing nonexisting field (rejected_reason) on node type (WhatsAppMessageTemplate)' }), page([{ ...template(1), rejected_reason: undefined }]))
    assert.equal((await provider.listTemplates(recorded.account, undefined, signal)).length, 1)
    say(refusal(100), ok({ data: [{ id: '7', display_phone_number: '+1 631-555-5555' }] }))
    assert.deepEqual(await provider.phoneNumbers(recorded.account, signal), [{ id: '7', displayPhoneNumber: '+1 631-555-5555', verifiedName: null, status: 'UNKNOWN', qualityRating: null }])
    assert.deepEqual(peer.asked.map(({ query }) => query.fields), [
      'id,name,language,status,category,rejected_reason,components', 'id,name,language,status,category,components',
      'id,display_phone_number,verified_name,status,quality_rating', 'id,display_phone_number,verified_name,quality_rating',
    ])
    say(refusal(100, { error_subcode: 33 }))
    assert.deepEqual(shown(await problemOf(provider.listTemplates('1', undefined, signal))), ['upstream_error', 'provider_not_found', false])
  })
})

describe('Templates and links at the provider', () => {
  it('count as duplicates when the list has them', async () => {
    const exists = refusal(100, { error_subcode: 2388024, error_user_title: 'Message template components param is invalid', error_user_msg: 'Body parameter at index 3 contains a URL' })
    const listed = (language: string) => ok({ data: [{ id: '5', name: 'season_sale', language, status: 'APPROVED' }] })
    say(exists, listed('en_US'), exists, listed('de'), exists, 'drop')
    const [there, elsewhere, nobodyKnows] = [1, 2, 3].map(() => () => problemOf(provider.createTemplate(recorded.account, seasonSale, signal)))
    assert.deepEqual(shown(await there!()), ['conflict', 'duplicate', false])
    const wrong = await elsewhere!()
    assert.deepEqual([...shown(wrong), wrong.message], ['invalid_input', 'template_rules', false, 'The provider does not take the template: Message template components param is invalid: Body parameter at index 3 contains a URL'])
    assert.deepEqual(shown(await nobodyKnows!()), ['conflict', 'duplicate', false])
  })

  it('are created, edited, brought back and deleted', async () => {
    say(ok({ id: 7, status: 'PENDING' }), ok({ success: true }), ok({ unarchived_templates: ['1'], failed_templates: { 2: 'Not archived: 16315551234' } }), ok({ success: true }), ok({ success: true }))
    assert.deepEqual(await provider.createTemplate(recorded.account, { name: 'a', language: 'de', category: 'UTILITY', allowCategoryChange: false, components: [] }, signal), { id: '7', status: 'PENDING', category: null })
    await provider.editTemplate('7', { components: [], category: 'UTILITY' }, signal)
    assert.deepEqual(await provider.unarchiveTemplates(recorded.account, ['1', '2'], signal), { unarchived: ['1'], failed: { 2: 'Not archived: …' } })
    await provider.deleteTemplate(recorded.account, { name: 'a' }, signal)
    await provider.deleteLink(from, 'ANED2T5QRU7HG1', signal)
    assert.deepEqual(peer.asked.map(({ method, path, query, body }) => `${method} ${path} ${JSON.stringify(query)} ${body}`), [
      `POST /base/v23.0/${recorded.account}/message_templates {} {"name":"a","language":"de","category":"UTILITY","allow_category_change":false,"components":[]}`,
      'POST /base/v23.0/7 {} {"components":[],"category":"UTILITY"}',
      `POST /base/${recorded.account}/message_templates/unarchive {} {"hsm_ids":["1","2"]}`,
      `DELETE /base/v23.0/${recorded.account}/message_templates {"name":"a"} `,
      `DELETE /base/v23.0/${recorded.phone}/message_qrdls/ANED2T5QRU7HG1 {} `,
    ])
  })

  it('are not done until the provider says so', async () => {
    say(ok({ success: false }), ok({}))
    assert.ok(outcomeUnknown(await problemOf(provider.editTemplate('7', { components: [] }, signal))))
    assert.ok(outcomeUnknown(await problemOf(provider.deleteLink(from, 'ANED2T5QRU7HG1', signal))))
  })

  it('are archived where the archive is', async () => {
    say(ok({ archived_templates: ['1'] }))
    assert.deepEqual(await adapter({ archiveUrl: `${peer.url}/archive/` }).archiveTemplates(recorded.account, ['1'], signal), { archived: ['1'], failed: {} })
    assert.equal(peer.asked[0]!.path, `/archive/${recorded.account}/message_templates/archive`)
  })

  it('are read one at a time', async () => {
    const link = { code: 'ANED2T5QRU7HG1', prefilled_message: 'Hi', deep_link_url: 'https://wa.me/message/ANED2T5QRU7HG1' }
    say(ok({ data: [link] }), ok({ data: [] }), refusal(803, {}, 404))
    assert.deepEqual(await provider.findLink(from, link.code, signal), { code: link.code, message: 'Hi', url: link.deep_link_url, qrImageUrl: null })
    assert.equal(await provider.findLink(from, link.code, signal), undefined)
    assert.equal(await provider.findLink(from, link.code, signal), undefined)
    assert.equal(peer.asked[0]!.path, `/base/v23.0/${recorded.phone}/message_qrdls/${link.code}`)
  })
})

describe('Samples uploaded to the provider', () => {
  const session = 'upload:MTphdHRhY2g=?sig=ARZ_k-x'
  const steps = () => peer.asked.map(({ method, path, query, headers, body }) => [method, path, query.sig, headers.authorization, headers.file_offset, body.toString()])
  const step = (method: string, offset: string | undefined, body: string) => [method, '/base/v23.0/upload:MTphdHRhY2g=', 'ARZ_k-x', `OAuth ${TOKEN}`, offset, body]

  it('are announced, sent, and known by a handle', async () => {
    say(ok({ id: session }), ok({ h: '4::aW1h' }))
    assert.deepEqual(await provider.uploadSample(small, signal), { handle: '4::aW1h' })
    assert.deepEqual([peer.asked[0]!.method, peer.asked[0]!.path, peer.asked[0]!.query], ['POST', '/base/v23.0/77/uploads', { file_name: 'small.png', file_length: '10', file_type: 'image/png' }])
    assert.deepEqual(steps().slice(1), [step('POST', '0', '0123456789')])
  })

  it('go on where a step broke', async () => {
    say(ok({ id: session }), 'drop', ok({ id: session, file_offset: 4 }), refusal(2, {}, 500), ok({ file_offset: '10' }), ok({ h: '4::aW1h' }))
    assert.deepEqual(await provider.uploadSample(small, signal), { handle: '4::aW1h' })
    assert.deepEqual(steps().slice(1), [step('POST', '0', '0123456789'), step('GET', undefined, ''), step('POST', '4', '456789'), step('GET', undefined, ''), step('POST', '10', '')])
  })

  it('are given up after some steps, and at once when they are refused', async () => {
    say(ok({ id: session }), ...Array.from({ length: 4 }, (): Answer[] => ['drop', ok({ file_offset: 0 })]).flat().slice(0, -1))
    assert.equal((await problemOf(provider.uploadSample(small, signal))).code, 'timeout')
    assert.deepEqual(peer.answers, [])
    say(ok({ id: session }), refusal(190, {}, 401))
    assert.deepEqual(shown(await problemOf(provider.uploadSample(small, signal))), ['upstream_error', 'provider_access', false])
    say(ok({ id: session }), 'drop', ok({ file_offset: 11 }))
    assert.ok(outcomeUnknown(await problemOf(provider.uploadSample(small, signal))))
  })

  it('go nowhere a session could lead', async () => {
    for (const id of ['upload:../../x', '/etc', 'https://elsewhere.example', 'upload:', 'upload:a#b', 'upload:a b', '']) {
      say(ok({ id }))
      assert.equal((await problemOf(provider.uploadSample(small, signal))).code, 'upstream_unavailable', id)
    }
    assert.deepEqual([...new Set(peer.asked.map(({ path }) => path))], ['/base/v23.0/77/uploads'])
  })

  it('want an app', async () => {
    assert.equal((await problemOf(adapter({ appId: undefined }).uploadSample(small, signal))).code, 'service_unconfigured')
    assert.deepEqual(peer.asked, [])
  })
})

describe('Files at the provider', () => {
  it('are uploaded as a form', async () => {
    say(ok({ id: 555 }))
    assert.deepEqual(await provider.uploadMedia(from, small, signal), { id: '555' })
    const { path, headers, body } = peer.asked[0]!
    assert.equal(path, `/base/v23.0/${recorded.phone}/media`)
    const form = await new Response(Uint8Array.from(body), { headers: { 'Content-Type': headers['content-type']! } }).formData()
    const file = form.get('file') as File
    assert.deepEqual([form.get('messaging_product'), form.get('type'), file.name, file.type, await file.text()], ['whatsapp', 'image/png', 'small.png', 'image/png', '0123456789'])
  })

  it('are described', async () => {
    say(ok({ url: 'https://lookaside.example/x', mime_type: 'image/jpeg', sha256: 'ab', file_size: '1000', id: '5', messaging_product: 'whatsapp' }), ok({ url: 'https://lookaside.example/x', mime_type: 'image/jpeg' }))
    assert.deepEqual(await provider.mediaInfo('5', signal), { url: 'https://lookaside.example/x', contentType: 'image/jpeg', size: 1000, sha256: 'ab' })
    assert.deepEqual(await provider.mediaInfo('5', signal), { url: 'https://lookaside.example/x', contentType: 'image/jpeg', size: null, sha256: null })
    assert.equal(peer.asked[0]!.path, '/base/v23.0/5')
  })

  it('are downloaded with the token, also over a redirect', async () => {
    say({ status: 302, headers: { Location: '/base/real' }, body: '' }, { body: small.bytes })
    assert.equal(Buffer.from(await provider.downloadMedia(`${peer.url}/file`, 10, signal)).toString(), '0123456789')
    assert.deepEqual(peer.asked.map(({ path, headers }) => [path, headers.authorization]), [['/file', `Bearer ${TOKEN}`], ['/base/real', `Bearer ${TOKEN}`]])
  })

  it('are not read beyond their limit, whether they say their size or not', async () => {
    const endless: Answer = (response) => {
      response.writeHead(200)
      const more = (): void => { if (!response.destroyed) response.write(Buffer.alloc(64 * 1024), () => setImmediate(more)) }
      more()
    }
    for (const answer of [{ body: small.bytes }, endless, { headers: { 'Content-Length': '100000' }, body: '' }]) {
      say(answer)
      const problem = await problemOf(provider.downloadMedia(`${peer.url}/file`, 9, signal))
      assert.deepEqual([problem.code, problem.extras.limit_bytes], ['payload_too_large', 9])
    }
  })

  it('are not fetched from elsewhere, and nobody else sees the token', async () => {
    const other = await startPeer()
    try {
      const hostile = [
        `${other.url}/file`, `${peer.url.replace('http', 'https')}/file`, peer.url.replace('http://', 'http://user:pass@'), 'file:///etc/passwd', 'data:text/plain,hi', '', 'nonsense',
        'https://127.0.0.1/x', 'https://[::1]/x', 'https://2130706433/x', 'https://0x7f.1/x', 'https://169.254.169.254/latest', 'https://localhost/x', 'https://intranet/x', 'https://db.internal/x',
        'https://printer.local./x', 'https://example.com:8443/x', 'http://example.com/x', 'ftp://example.com/x',
      ]
      for (const url of hostile) assert.deepEqual(shown(await problemOf(provider.downloadMedia(url, 10, signal))), ['upstream_error', 'media_refused', false], url)
      for (const Location of [`${other.url}/file`, 'https://127.0.0.1/x', 'file:///etc/passwd', '//', '']) {
        say({ status: 307, headers: { Location }, body: '' })
        assert.deepEqual(shown(await problemOf(provider.downloadMedia(`${peer.url}/file`, 10, signal))), ['upstream_error', 'media_refused', false], Location)
      }
      assert.deepEqual(other.asked, [])
      say(...Array.from({ length: 4 }, (): Answer => ({ status: 302, headers: { Location: '/round' }, body: '' })))
      assert.equal((await problemOf(provider.downloadMedia(`${peer.url}/round`, 10, signal))).extras.reason, 'media_refused')
      assert.deepEqual(peer.answers, [])
    } finally {
      await other.close()
    }
  })

  it('may be gone, forbidden, or unavailable', async () => {
    const cases: [Answer, ReturnType<typeof shown>][] = [
      [{ status: 404, body: '' }, ['upstream_error', 'provider_not_found', false]],
      [{ status: 410, body: '' }, ['upstream_error', 'provider_not_found', false]],
      [{ status: 401, body: '' }, ['upstream_error', 'provider_access', false]],
      [{ status: 500, body: '' }, ['upstream_unavailable', undefined, true]],
      ['drop', ['timeout', undefined, true]],
    ]
    for (const [answer, expected] of cases) {
      say(answer)
      assert.deepEqual(shown(await problemOf(provider.downloadMedia(`${peer.url}/file`, 10, signal))), expected)
    }
  })
})

describe('Whatever comes back', () => {
  const calls: Record<keyof Provider, () => Promise<unknown>> = {
    send, findSent: () => provider.findSent(from, 'r', signal),
    uploadMedia: () => provider.uploadMedia(from, small, signal), mediaInfo: () => provider.mediaInfo('5', signal), downloadMedia: () => provider.downloadMedia(`${peer.url}/f`, 100, signal),
    phoneNumbers: () => provider.phoneNumbers('5', signal), subscribe: () => provider.subscribe('5', undefined, signal),
    createTemplate: () => provider.createTemplate('5', seasonSale, signal), editTemplate: () => provider.editTemplate('5', { components: [] }, signal),
    listTemplates: () => provider.listTemplates('5', 'x', signal), archiveTemplates: () => provider.archiveTemplates('5', ['1'], signal),
    unarchiveTemplates: () => provider.unarchiveTemplates('5', ['1'], signal), deleteTemplate: () => provider.deleteTemplate('5', { name: 'x' }, signal),
    uploadSample: () => provider.uploadSample(small, signal), createLink: () => provider.createLink(from, { message: 'Hi', qrFormat: null }, signal),
    updateLink: () => provider.updateLink(from, { code: 'A', message: 'Hi' }, signal), findLink: () => provider.findLink(from, 'A', signal),
    listLinks: () => provider.listLinks(from, signal), deleteLink: () => provider.deleteLink(from, 'A', signal),
  }
  const word = fc.constantFrom('error', 'code', 'error_subcode', 'error_data', 'details', 'message', 'data', 'id', 'paging', 'cursors', 'after', 'next', 'messages', 'success', 'h', 'url', 'fbtrace_id', 'is_transient', 'failed_templates')
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom(...refusals.flatMap((rule) => [...rule.codes.flat(), ...rule.subcodes ?? []])), fc.constant(TOKEN))
  const { node } = fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.oneof({ maxDepth: 4 }, value, fc.dictionary(fc.oneof({ weight: 5, arbitrary: word }, { weight: 1, arbitrary: fc.string() }), tie('node'), { maxKeys: 4 }), fc.array(tie('node'), { maxLength: 3 })),
  }))
  const error = fc.record({ error: fc.dictionary(word, node, { maxKeys: 6 }) })
  const body = fc.oneof(node.map((json) => JSON.stringify(json)), error.map((json) => JSON.stringify(json)), fc.string(), fc.uint8Array({ maxLength: 50 }))
  const answer = fc.record({
    status: fc.oneof(fc.constantFrom(200, 200, 400, 401, 404, 429, 500, 503), fc.integer({ min: 200, max: 599 })), body,
    headers: fc.dictionary(fc.constantFrom('Retry-After', 'X-Business-Use-Case-Usage', 'Location', 'Content-Encoding'), fc.oneof(fc.json({ maxDepth: 2 }), fc.constantFrom('1e9', '-1', 'gzip', 'NaN')).filter((text) => /^[\x20-\x7e]*$/.test(text)), { maxKeys: 2 }),
  })

  it('is an answer or a problem that can be shown, and never holds the token', async () => {
    await fc.assert(fc.asyncProperty(fc.constantFrom(...Object.keys(calls) as (keyof Provider)[]), fc.array(answer, { minLength: 1, maxLength: 3 }), async (name, answers) => {
      peer.answers.length = 0
      say(...answers)
      const problem = await calls[name]().then(() => undefined, (thrown: unknown) => thrown)
      if (problem === undefined) return
      assert.ok(problem instanceof Problem, `${name}: ${String(problem)}`)
      const told = JSON.stringify([problem.message, problem.extras, problem.headers])
      assert.ok(problem.message.length > 10 && problem.status >= 400 && !told.includes(TOKEN) && !told.includes('\\u0000'), told)
      assert.match(problem.headers['Retry-After'] ?? '1', /^[1-9]\d{0,4}$/)
    }), { numRuns: 600 })
  })
})

describe('The guide to the provider', () => {
  const row = ({ codes, subcodes, becomes, reason, says }: (typeof refusals)[number]): string => {
    const listed = codes.map((code) => typeof code === 'number' ? String(code) : code.join('–')).join(', ')
    return `| ${listed}${subcodes ? ` with ${subcodes.join(', ')}` : ''} | \`${becomes}\`${reason ? ` \`${reason}\`` : ''} | ${says} |`
  }

  it('has the table of refusals as it is', () => {
    const guide = readFileSync('docs/provider.md', 'utf8')
    const written = guide.split('\n').filter((line) => /^\| \d/.test(line))
    assert.deepEqual(written, refusals.map(row), `write into docs/provider.md:\n${refusals.map(row).join('\n')}`)
  })
})
