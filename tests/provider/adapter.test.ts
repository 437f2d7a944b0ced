import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ErrorCode } from '../../catalog/errors.ts'
import { isOutcomeUnknown, type OutgoingMessage } from '../../server/provider/port.ts'
import type { Answer } from '../peer.ts'
import {
  adapter,
  from,
  ok,
  problemOf,
  refusal,
  say,
  scene,
  send,
  setScene,
  shown,
  signal,
  text,
  TOKEN,
} from './scene.ts'
import { type Exchange, exchange, exchanges, recorded, seasonSale } from './recorded.ts'

setScene()

describe('Recorded exchanges with the provider', () => {
  const hi = { message: "Hi! I'm interested in your products. Can you help me?", qrFormat: 'SVG' as const }
  const latest = "Hello! I'd like to know more about your latest offers."
  const callback = { url: 'https://crm.example.com/provider/webhook', verifyToken: 'T' }
  const duplicate = { data: [{ id: '5', name: 'season_sale', language: 'en_US', status: 'APPROVED' }] }
  type Played = {
    call: () => Promise<unknown>
    gives?: unknown
    refuses?: [ErrorCode, string | undefined, boolean]
    after?: Answer[]
  }
  const played: Record<string, Played> = {
    'A1 create': {
      call: () => scene.provider.createLink(from, hi, signal),
      gives: {
        code: 'ANED2T5QRU7HG1',
        message: hi.message,
        url: 'https://wa.me/message/ANED2T5QRU7HG1',
        qrImageUrl: 'https://scontent.../m1/v/t6/An-...',
      },
    },
    'A1 too long': {
      call: () => scene.provider.createLink(from, hi, signal),
      refuses: ['upstream_error', 'provider_refused', false],
    },
    'A1 bad token': {
      call: () => scene.provider.createLink(from, hi, signal),
      refuses: ['upstream_error', 'provider_access', false],
    },
    'A1 no permission': {
      call: () => scene.provider.createLink(from, hi, signal),
      refuses: ['upstream_error', 'provider_access', false],
    },
    'A1 no such number': {
      call: () => scene.provider.createLink(from, hi, signal),
      refuses: ['upstream_error', 'provider_not_found', false],
    },
    'A1 throttled': {
      call: () => scene.provider.createLink(from, hi, signal),
      refuses: ['upstream_unavailable', 'throttled', false],
    },
    'A1 fault': {
      call: () => scene.provider.createLink(from, hi, signal),
      refuses: ['upstream_unavailable', undefined, true],
    },
    'A1 update': {
      call: () => scene.provider.updateLink(from, { code: 'ANED2T5QRU7HG1', message: latest }, signal),
      gives: {
        code: 'ANED2T5QRU7HG1',
        message: latest,
        url: 'https://wa.me/message/ANED2T5QRU7HG1',
        qrImageUrl: null,
      },
    },
    'A2 list': {
      call: () => scene.provider.listLinks(from, signal),
      gives: [
        {
          code: '5QBPAD2DC6L5A1',
          message: 'Show me Cyber Tuesday deals!',
          url: 'https://wa.me/message/5QBPAD2DC6L5A1',
          qrImageUrl: null,
        },
      ],
    },
    'A2 empty': { call: () => scene.provider.listLinks(from, signal), gives: [] },
    'A3 create': {
      call: () => scene.provider.createTemplate(recorded.account, seasonSale, signal),
      gives: { id: '1689556908129832', status: 'PENDING', category: 'UTILITY' },
    },
    'A3 exists': {
      call: () => scene.provider.createTemplate(recorded.account, seasonSale, signal),
      after: [ok(duplicate)],
      refuses: ['conflict', 'duplicate', false],
    },
    'A4 delete': {
      call: () =>
        scene.provider.deleteTemplate(
          recorded.account,
          { name: 'season_sale', id: '1689556908129832' },
          signal,
        ),
      gives: undefined,
    },
    'A5 archive': {
      call: () => scene.provider.archiveTemplates(recorded.account, ['1689556908129832', '42'], signal),
      gives: {
        archived: ['1689556908129832'],
        failed: { 42: 'Only approved or rejected templates can be archived' },
      },
    },
    'A6 phone numbers': {
      call: () => scene.provider.phoneNumbers(recorded.account, signal),
      gives: [
        {
          id: '1906385232743451',
          displayPhoneNumber: '+1 631-555-5555',
          verifiedName: "Jasper's Market",
          status: 'LINKED',
          qualityRating: 'GREEN',
        },
      ],
    },
    'A7 subscribe': {
      call: () => scene.provider.subscribe(recorded.account, undefined, signal),
      gives: undefined,
    },
    'A7 subscribe elsewhere': {
      call: () => scene.provider.subscribe(recorded.account, callback, signal),
      gives: undefined,
    },
    'A7 unreachable': {
      call: () => scene.provider.subscribe(recorded.account, callback, signal),
      refuses: ['upstream_error', 'provider_refused', false],
    },
    'A8 send': { call: send, gives: { id: 'wamid.HBgLMTYz...' } },
    '2.8 no such template': {
      call: () =>
        scene.provider.send(
          from,
          {
            to: '16315551234',
            reference: 'msg_01K...',
            body: { type: 'template', template: { name: 'x', language: { code: 'en_US' } } },
          },
          signal,
        ),
      refuses: ['invalid_input', 'template_unavailable', false],
    },
  }

  const assertAsked = ({ request }: Exchange): void => {
    const { method, path, query, headers, body } = scene.peer.asked[0]!
    assert.deepEqual(
      [method, path],
      [request.method, `/base/${request.unversioned ? '' : `${recorded.version}/`}${request.path}`],
    )
    assert.equal(headers.authorization, `Bearer ${TOKEN}`)
    for (const [name, value] of Object.entries(request.query ?? {})) assert.equal(query[name], value)
    // Byte for byte, the order of members too.
    assert.equal(body.toString(), request.body === undefined ? '' : JSON.stringify(request.body))
    assert.equal(headers['content-type'], request.body === undefined ? undefined : 'application/json')
  }

  for (const { name, response } of exchanges) {
    it(name, async () => {
      const { call, gives, refuses, after: more = [] } = played[name] ?? assert.fail(`${name} is not played`)
      say({ status: response.status, body: response.body }, ...more)
      if (refuses) assert.deepEqual(shown(await problemOf(call())), refuses)
      else assert.deepEqual(await call(), gives)
      assertAsked(exchange(name))
      assert.equal(scene.peer.asked.length, 1 + more.length, 'asked once and never again')
    })
  }
})

describe('Messages to the provider', () => {
  const sent = ok({ messages: [{ id: 'wamid.1' }] })
  const envelope = { messaging_product: 'whatsapp', recipient_type: 'individual' }
  const cases: { name: string; message: OutgoingMessage; body: Record<string, unknown> }[] = [
    {
      name: 'an answer',
      message: { ...text, replyTo: 'wamid.0' },
      body: {
        ...envelope,
        to: '16315551234',
        context: { message_id: 'wamid.0' },
        type: 'text',
        text: { body: 'Hi' },
      },
    },
    {
      name: 'to someone without a number',
      message: { recipient: 'US.13491208655302741918', reference: 'r', body: text.body },
      body: { ...envelope, recipient: 'US.13491208655302741918', type: 'text', text: { body: 'Hi' } },
    },
    ...[
      { type: 'image', image: { link: 'https://example.com/a.png', caption: 'A' } },
      { type: 'document', document: { id: '5', filename: 'a.pdf' } },
      {
        type: 'interactive',
        interactive: { type: 'button', body: { text: 'Which?' }, action: { buttons: [] } },
      },
      { type: 'reaction', reaction: { message_id: 'wamid.0', emoji: '👍' } },
      { type: 'template', template: { name: 'hello', language: { code: 'en_US' }, components: [] } },
    ].map((body) => ({
      name: `of the type ${body.type}`,
      message: { to: '1', reference: 'r', body },
      body: { ...envelope, to: '1', ...body },
    })),
  ]
  for (const { name, message, body } of cases) {
    it(name, async () => {
      say(sent)
      assert.deepEqual(await scene.provider.send(from, message, signal), { id: 'wamid.1' })
      assert.deepEqual(
        scene.peer.asked.map((asked) => JSON.parse(asked.body.toString())),
        [{ ...body, biz_opaque_callback_data: message.reference }],
      )
    })
  }

  it('are found by their reference where the provider can be asked', async () => {
    say(ok({ data: [{ id: 'wamid.1' }] }), ok({ data: [] }))
    assert.deepEqual(await scene.provider.findSent(from, 'msg_1', signal), { id: 'wamid.1' })
    assert.equal(await scene.provider.findSent(from, 'msg_1', signal), 'absent')
    assert.deepEqual(
      scene.peer.asked.map(({ method, path, query }) => [method, path, query]),
      Array(2).fill(['GET', `/base/v23.0/${recorded.phone}/messages`, { biz_opaque_callback_data: 'msg_1' }]),
    )
  })

  it('are unknown where it refuses to be asked, or answers something else', async () => {
    for (const answer of [
      refusal(100, { error_subcode: 33 }),
      refusal(190, {}, 401),
      { status: 404, body: '<html>' },
      ok({ data: [{ id: 'a' }, { id: 'b' }] }),
      ok({ messages: [] }),
      ok(''),
    ]) {
      say(answer)
      assert.equal(await scene.provider.findSent(from, 'msg_1', signal), 'unknown', JSON.stringify(answer))
    }
  })

  it('may have been sent when nobody can be asked', async () => {
    for (const answer of [refusal(2, {}, 500), refusal(4, {}, 429), 'drop'] as Answer[]) {
      say(answer)
      assert.ok(
        isOutcomeUnknown(await problemOf(scene.provider.findSent(from, 'msg_1', signal))),
        JSON.stringify(answer),
      )
    }
  })
})

describe('Lists of the provider', () => {
  const template = (n: number) => ({
    id: n,
    name: n === 3 ? 'other_hello' : 'hello',
    language: `l${n}`,
    status: 'APPROVED',
    category: 'UTILITY',
    components: [],
    rejected_reason: n === 1 ? 'NONE' : 'SCAM',
    extra: true,
  })
  const page = (rows: unknown[], afterCursor?: string, next = afterCursor) =>
    ok({
      data: rows,
      paging: {
        cursors: { before: 'b', after: afterCursor ?? 'end' },
        ...(next ? { next: `https://elsewhere.example/?access_token=${TOKEN}` } : {}),
      },
    })

  it('are read to the end by their cursors', async () => {
    say(page([template(1)], 'two'), page([], 'three'), page([template(2), template(3)]))
    const rows = await scene.provider.listTemplates(recorded.account, undefined, signal)
    assert.deepEqual(
      rows.map(({ id, language, rejectedReason }) => [id, language, rejectedReason]),
      [
        ['1', 'l1', null],
        ['2', 'l2', 'SCAM'],
        ['3', 'l3', 'SCAM'],
      ],
    )
    assert.deepEqual(
      scene.peer.asked.map(({ path, query }) => [path, query.after, query.limit]),
      [undefined, 'two', 'three'].map((cursor) => [
        `/base/v23.0/${recorded.account}/message_templates`,
        cursor,
        '100',
      ]),
    )
  })

  it('hold the templates of a name alone, where it is asked for', async () => {
    say(page([template(1), template(2), template(3)]))
    assert.deepEqual(
      (await scene.provider.listTemplates(recorded.account, 'hello', signal)).map((t) => t.id),
      ['1', '2'],
    )
    assert.equal(scene.peer.asked[0]!.query.name, 'hello')
  })

  it('that go in circles or lack rows are no lists', async () => {
    for (const answers of [
      [page([], 'x'), page([], 'x')],
      [ok({ data: [], paging: { next: 'https://elsewhere.example' } })],
      [ok({ data: [{ id: '1' }] })],
      [ok({ data: {} })],
      [ok({ data: [], paging: 7 })],
    ]) {
      say(...answers)
      assert.deepEqual(
        shown(await problemOf(scene.provider.listTemplates(recorded.account, undefined, signal))),
        ['upstream_unavailable', undefined, true],
      )
    }
    assert.deepEqual(scene.peer.answers, [])
  })

  it('are asked for fewer fields where one is unknown', async () => {
    say(
      refusal(100, {
        message:
          '(#100) Tried accessing nonexisting field (rejected_reason) on node type (WhatsAppMessageTemplate)',
      }),
      page([{ ...template(1), rejected_reason: undefined }]),
    )
    assert.equal((await scene.provider.listTemplates(recorded.account, undefined, signal)).length, 1)
    say(refusal(100), ok({ data: [{ id: '7', display_phone_number: '+1 631-555-5555' }] }))
    assert.deepEqual(await scene.provider.phoneNumbers(recorded.account, signal), [
      {
        id: '7',
        displayPhoneNumber: '+1 631-555-5555',
        verifiedName: null,
        status: 'UNKNOWN',
        qualityRating: null,
      },
    ])
    assert.deepEqual(
      scene.peer.asked.map(({ query }) => query.fields),
      [
        'id,name,language,status,category,rejected_reason,components',
        'id,name,language,status,category,components',
        'id,display_phone_number,verified_name,status,quality_rating',
        'id,display_phone_number,verified_name,quality_rating',
      ],
    )
    say(refusal(100, { error_subcode: 33 }))
    assert.deepEqual(shown(await problemOf(scene.provider.listTemplates('1', undefined, signal))), [
      'upstream_error',
      'provider_not_found',
      false,
    ])
  })
})

describe('Templates and links at the provider', () => {
  it('count as duplicates when the list has them', async () => {
    const exists = refusal(100, {
      error_subcode: 2388024,
      error_user_title: 'Message template components param is invalid',
      error_user_msg: 'Body parameter at index 3 contains a URL',
    })
    const listed = (language: string) =>
      ok({ data: [{ id: '5', name: 'season_sale', language, status: 'APPROVED' }] })
    say(exists, listed('en_US'), exists, listed('de'), exists, 'drop')
    const [there, elsewhere, nobodyKnows] = [1, 2, 3].map(
      () => () => problemOf(scene.provider.createTemplate(recorded.account, seasonSale, signal)),
    )
    assert.deepEqual(shown(await there!()), ['conflict', 'duplicate', false])
    const wrong = await elsewhere!()
    assert.deepEqual(
      [...shown(wrong), wrong.message],
      [
        'invalid_input',
        'template_rules',
        false,
        'The provider does not accept the template: Message template components param is invalid: Body parameter at index 3 contains a URL',
      ],
    )
    assert.deepEqual(shown(await nobodyKnows!()), ['conflict', 'duplicate', false])
  })

  it('are created, edited, brought back and deleted', async () => {
    say(
      ok({ id: 7, status: 'PENDING' }),
      ok({ success: true }),
      ok({ unarchived_templates: ['1'], failed_templates: { 2: 'Not archived: 16315551234' } }),
      ok({ success: true }),
      ok({ success: true }),
    )
    assert.deepEqual(
      await scene.provider.createTemplate(
        recorded.account,
        { name: 'a', language: 'de', category: 'UTILITY', allowCategoryChange: false, components: [] },
        signal,
      ),
      { id: '7', status: 'PENDING', category: null },
    )
    await scene.provider.editTemplate('7', { components: [], category: 'UTILITY' }, signal)
    assert.deepEqual(await scene.provider.unarchiveTemplates(recorded.account, ['1', '2'], signal), {
      unarchived: ['1'],
      failed: { 2: 'Not archived: …' },
    })
    await scene.provider.deleteTemplate(recorded.account, { name: 'a' }, signal)
    await scene.provider.deleteLink(from, 'ANED2T5QRU7HG1', signal)
    assert.deepEqual(
      scene.peer.asked.map(
        ({ method, path, query, body }) => `${method} ${path} ${JSON.stringify(query)} ${body}`,
      ),
      [
        `POST /base/v23.0/${recorded.account}/message_templates {} {"name":"a","language":"de","category":"UTILITY","allow_category_change":false,"components":[]}`,
        'POST /base/v23.0/7 {} {"components":[],"category":"UTILITY"}',
        `POST /base/${recorded.account}/message_templates/unarchive {} {"hsm_ids":["1","2"]}`,
        `DELETE /base/v23.0/${recorded.account}/message_templates {"name":"a"} `,
        `DELETE /base/v23.0/${recorded.phone}/message_qrdls/ANED2T5QRU7HG1 {} `,
      ],
    )
  })

  it('are not done until the provider says so', async () => {
    say(ok({ success: false }), ok({}))
    assert.ok(isOutcomeUnknown(await problemOf(scene.provider.editTemplate('7', { components: [] }, signal))))
    assert.ok(isOutcomeUnknown(await problemOf(scene.provider.deleteLink(from, 'ANED2T5QRU7HG1', signal))))
  })

  it('are archived where the archive is', async () => {
    say(ok({ archived_templates: ['1'] }))
    assert.deepEqual(
      await adapter({ archiveUrl: `${scene.peer.url}/archive/` }).archiveTemplates(
        recorded.account,
        ['1'],
        signal,
      ),
      { archived: ['1'], failed: {} },
    )
    assert.equal(scene.peer.asked[0]!.path, `/archive/${recorded.account}/message_templates/archive`)
  })

  it('are read one at a time', async () => {
    const link = {
      code: 'ANED2T5QRU7HG1',
      prefilled_message: 'Hi',
      deep_link_url: 'https://wa.me/message/ANED2T5QRU7HG1',
    }
    say(ok({ data: [link] }), ok({ data: [] }))
    assert.deepEqual(await scene.provider.findLink(from, link.code, signal), {
      code: link.code,
      message: 'Hi',
      url: link.deep_link_url,
      qrImageUrl: null,
    })
    assert.equal(await scene.provider.findLink(from, link.code, signal), undefined)
    assert.deepEqual(
      [scene.peer.asked[0]!.path, scene.peer.asked[0]!.query.code],
      [`/base/v23.0/${recorded.phone}/message_qrdls`, link.code],
    )
  })
})
