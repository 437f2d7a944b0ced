import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { ErrorCode } from '../../catalog/errors.ts'
import { Problem } from '../../server/core/problem.ts'
import { refusalRules } from '../../server/provider/adapter/refusal-rules.ts'
import { lookUpOutcome, type Provider } from '../../server/provider/port.ts'
import type { Answer } from '../peer.ts'
import {
  adapter,
  from,
  problemOf,
  refusal,
  say,
  scene,
  send,
  setScene,
  shown,
  signal,
  small,
  text,
  TOKEN,
} from './scene.ts'
import { seasonSale } from './recorded.ts'

setScene()

describe('Refusals of the provider', () => {
  // From the protocol notes: code, or code and subcode → what it becomes.
  const rows: [
    codes: (number | [number, number])[],
    becomes: ErrorCode,
    reason?: string,
    pointer?: string,
  ][] = [
    [[131047], 'window_closed'],
    [
      [
        [100, 2388023],
        [100, 2388024],
      ],
      'conflict',
      'duplicate',
    ],
    [[[100, 2388019]], 'upstream_error', 'template_limit'],
    [
      [
        [100, 2388043],
        [100, 2388047],
      ],
      'invalid_input',
      'template_rules',
      '#/template/header',
    ],
    [
      [
        [100, 2388072],
        [100, 2388293],
        [100, 2388299],
      ],
      'invalid_input',
      'template_rules',
      '#/template/body',
    ],
    [[[100, 2388073]], 'invalid_input', 'template_rules', '#/template/footer'],
    [[[100, 2388040]], 'invalid_input', 'template_rules', '#/template'],
    [[100, [100, 1]], 'upstream_error', 'provider_refused'],
    [[33, 803, [100, 33]], 'upstream_error', 'provider_not_found'],
    [[0, 3, 10, 190, 200, 299, 131005, [190, 463]], 'upstream_error', 'provider_access'],
    [[368, 130497, 131031, 131048, 131064], 'upstream_error', 'account_restricted'],
    [
      [131037, 131042, 131045, 133000, 133006, 133008, 133009, 133010, 133015, 134011],
      'upstream_error',
      'account_incomplete',
    ],
    [[1, 2, 131000, 131016, 131057, 133004, 133005], 'upstream_unavailable'],
    [
      [4, 17, 32, 613, 80004, 80007, 80008, 130429, 131056, 133016, [4, 2446079]],
      'upstream_unavailable',
      'throttled',
    ],
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
          say(
            refusal(
              code,
              { ...(subcode === undefined ? {} : { error_subcode: subcode }), fbtrace_id: 'AbC-1_2' },
              status,
            ),
          )
          const problem = await problemOf(send())
          assert.deepEqual(
            shown(problem),
            [becomes, reason, becomes === 'upstream_unavailable' && reason === undefined],
            `${given} at ${status}`,
          )
          assert.deepEqual(
            [problem.extras.provider_code, problem.extras.provider_subcode, problem.extras.provider_trace_id],
            [code, subcode, 'AbC-1_2'],
          )
          assert.deepEqual(
            problem.extras.errors?.map((e) => [e.pointer, e.code]),
            becomes === 'invalid_input' ? [[pointer, reason]] : undefined,
          )
        }
      }
    }
  })

  it('are all tried above', () => {
    const tried = new Set(rows.flatMap(([codes]) => codes.map((given) => [given].flat().join('/'))))
    for (const { codes, subcodes } of refusalRules) {
      for (const code of codes.flat())
        for (const subcode of subcodes ?? [undefined])
          assert.ok(
            tried.has([code, subcode].filter((part) => part !== undefined).join('/')),
            `${code}/${subcode}`,
          )
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
      [
        { status: 302, headers: { Location: `${scene.peer.url}/elsewhere` }, body: '' },
        ['upstream_error', 'provider_refused', false],
      ],
      [{ status: 200, body: page }, ['upstream_unavailable', undefined, true]],
      [{ status: 200, body: '{"messages":[{"id":"wami' }, ['upstream_unavailable', undefined, true]],
      [{ status: 200, body: { messages: [] } }, ['upstream_unavailable', undefined, true]],
      [{ status: 204 }, ['upstream_unavailable', undefined, true]],
      [{ status: 200, body: `"${'x'.repeat(9 * 1024 * 1024)}"` }, ['upstream_unavailable', undefined, true]],
    ]
    for (const [answer, expected] of cases) {
      scene.peer.asked.length = 0
      say(answer)
      assert.deepEqual(shown(await problemOf(send())), expected, JSON.stringify(answer).slice(0, 100))
      assert.equal(scene.peer.asked.length, 1)
    }
  })

  it('say why, without phone numbers, ids of people and the token', async () => {
    const details: [unknown, string][] = [
      [
        { error_data: { details: 'Recipient +1 (631) 555-1234 is not on the list' } },
        'Recipient … is not on the list',
      ],
      [
        { error_data: { details: `Token ${TOKEN} of 16315551234, user US.13491208655302741918` } },
        'Token … of …, user US.…',
      ],
      [
        { error_user_title: 'Too long', error_user_msg: 'At most 1024 characters.' },
        'Too long: At most 1024 characters.',
      ],
      [
        { message: '(#100) Param to must be\n\u0000 set', error_data: { details: ' ' } },
        'Param to must be set',
      ],
      [{ message: '٠١٢٣٤٥٦٧٨٩' }, '…'],
    ]
    for (const [more, expected] of details) {
      say(refusal(100, more as Record<string, unknown>))
      const problem = await problemOf(send())
      assert.equal(problem.message, `The provider does not accept a parameter. The provider says: ${expected}`)
    }
    say(refusal(100, { message: `${'x'.repeat(5000)}${TOKEN}` }))
    assert.ok((await problemOf(send())).message.length < 400)
  })

  it('say when to come back', async () => {
    const usage = (...minutes: unknown[]) => ({
      'X-Business-Use-Case-Usage': JSON.stringify({
        5: minutes.map((m) => ({ type: 'messaging', call_count: 100, estimated_time_to_regain_access: m })),
      }),
    })
    const cases: [number, number, Record<string, string>, string | undefined][] = [
      [130429, 429, {}, '60'],
      [131056, 429, {}, '6'],
      [4, 429, { 'Retry-After': '90' }, '90'],
      [4, 429, usage(3), '180'],
      [4, 429, usage(0), '60'],
      [80008, 429, { 'Retry-After': '10', ...usage(1, 2) }, '120'],
      [4, 429, { 'Retry-After': 'soon' }, '60'],
      [4, 429, { 'Retry-After': '-5' }, '60'],
      [4, 429, { 'Retry-After': '999999999' }, '86400'],
      [4, 429, { 'X-Business-Use-Case-Usage': '{' }, '60'],
      [4, 429, { 'X-Business-Use-Case-Usage': 'null' }, '60'],
      [4, 429, usage('1', null, { a: 1 }), '60'],
      [2, 503, { 'Retry-After': '7' }, '7'],
      [2, 503, {}, undefined],
      [190, 401, { 'Retry-After': '7' }, undefined],
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
      const problem = await problemOf(lookUpOutcome(scene.provider.listLinks(from, signal)))
      assert.deepEqual(shown(problem), ['upstream_unavailable', undefined, true])
    }
  })
})

describe('A connection to the provider', () => {
  it('that breaks after the request leaves the outcome open', async () => {
    const broken: Answer[] = [
      'drop',
      (response) => {
        response.writeHead(200, { 'Content-Length': '500' })
        response.write('{"messages"')
        setImmediate(() => response.destroy())
      },
    ]
    for (const answer of broken) {
      say(answer)
      assert.deepEqual(shown(await problemOf(send())), ['timeout', undefined, true])
    }
    assert.equal(scene.peer.asked.length, 2, 'nothing is sent twice')
  })

  it('that is too slow is given up', async () => {
    const slow: Answer[] = [
      'silent',
      (response) => {
        response.writeHead(200)
        response.write('{')
      },
    ]
    for (const answer of slow) {
      say(answer)
      assert.deepEqual(shown(await problemOf(adapter({ timeoutMs: 100 }).send(from, text, signal))), [
        'timeout',
        undefined,
        true,
      ])
    }
    assert.equal(scene.peer.asked.length, 2)
  })

  it('is given up when the caller gives up', async () => {
    const caller = new AbortController()
    say('silent')
    const call = problemOf(scene.provider.send(from, text, caller.signal))
    caller.abort()
    assert.deepEqual(shown(await call), ['timeout', undefined, true])
    scene.peer.asked.length = 0
    assert.deepEqual(shown(await problemOf(scene.provider.send(from, text, caller.signal))), [
      'timeout',
      undefined,
      true,
    ])
    assert.deepEqual(scene.peer.asked, [])
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
      assert.equal(
        (await problemOf(scene.provider.send({ phoneNumberId: id }, text, signal))).code,
        'upstream_error',
      )
      assert.equal((await problemOf(scene.provider.deleteLink(from, id, signal))).code, 'upstream_error')
    }
    assert.deepEqual(scene.peer.asked, [])
  })
})

describe('Whatever comes back', () => {
  const calls: Record<keyof Provider, () => Promise<unknown>> = {
    send,
    findSent: () => scene.provider.findSent(from, 'r', signal),
    uploadMedia: () => scene.provider.uploadMedia(from, small, signal),
    mediaInfo: () => scene.provider.mediaInfo('5', signal),
    downloadMedia: () => scene.provider.downloadMedia(`${scene.peer.url}/f`, 100, signal),
    phoneNumbers: () => scene.provider.phoneNumbers('5', signal),
    subscribe: () => scene.provider.subscribe('5', undefined, signal),
    createTemplate: () => scene.provider.createTemplate('5', seasonSale, signal),
    editTemplate: () => scene.provider.editTemplate('5', { components: [] }, signal),
    listTemplates: () => scene.provider.listTemplates('5', 'x', signal),
    archiveTemplates: () => scene.provider.archiveTemplates('5', ['1'], signal),
    unarchiveTemplates: () => scene.provider.unarchiveTemplates('5', ['1'], signal),
    deleteTemplate: () => scene.provider.deleteTemplate('5', { name: 'x' }, signal),
    uploadSample: () => scene.provider.uploadSample(small, signal),
    createLink: () => scene.provider.createLink(from, { message: 'Hi', qrFormat: null }, signal),
    updateLink: () => scene.provider.updateLink(from, { code: 'A', message: 'Hi' }, signal),
    findLink: () => scene.provider.findLink(from, 'A', signal),
    listLinks: () => scene.provider.listLinks(from, signal),
    deleteLink: () => scene.provider.deleteLink(from, 'A', signal),
  }
  const word = fc.constantFrom(
    'error',
    'code',
    'error_subcode',
    'error_data',
    'details',
    'message',
    'data',
    'id',
    'paging',
    'cursors',
    'after',
    'next',
    'messages',
    'success',
    'h',
    'url',
    'fbtrace_id',
    'is_transient',
    'failed_templates',
  )
  const value = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(...refusalRules.flatMap((rule) => [...rule.codes.flat(), ...(rule.subcodes ?? [])])),
    fc.constant(TOKEN),
  )
  const { node } = fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      value,
      fc.dictionary(
        fc.oneof({ weight: 5, arbitrary: word }, { weight: 1, arbitrary: fc.string() }),
        tie('node'),
        { maxKeys: 4 },
      ),
      fc.array(tie('node'), { maxLength: 3 }),
    ),
  }))
  const error = fc.record({ error: fc.dictionary(word, node, { maxKeys: 6 }) })
  const body = fc.oneof(
    node.map((json) => JSON.stringify(json)),
    error.map((json) => JSON.stringify(json)),
    fc.string(),
    fc.uint8Array({ maxLength: 50 }),
  )
  const answer = fc.record({
    status: fc.oneof(
      fc.constantFrom(200, 200, 400, 401, 404, 429, 500, 503),
      fc.integer({ min: 200, max: 599 }),
    ),
    body,
    headers: fc.dictionary(
      fc.constantFrom('Retry-After', 'X-Business-Use-Case-Usage', 'Location', 'Content-Encoding'),
      fc
        .oneof(fc.json({ maxDepth: 2 }), fc.constantFrom('1e9', '-1', 'gzip', 'NaN'))
        .filter((text) => /^[\x20-\x7e]*$/.test(text)),
      { maxKeys: 2 },
    ),
  })

  it('is an answer or a problem that can be shown, and never holds the token', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...(Object.keys(calls) as (keyof Provider)[])),
        fc.array(answer, { minLength: 1, maxLength: 3 }),
        async (name, answers) => {
          scene.peer.answers.length = 0
          say(...answers)
          const problem = await calls[name]().then(
            () => undefined,
            (thrown: unknown) => thrown,
          )
          if (problem === undefined) return
          assert.ok(problem instanceof Problem, `${name}: ${String(problem)}`)
          const told = JSON.stringify([problem.message, problem.extras, problem.headers])
          assert.ok(
            problem.message.length > 10 &&
              problem.status >= 400 &&
              !told.includes(TOKEN) &&
              !told.includes('\\u0000'),
            told,
          )
          assert.match(problem.headers['Retry-After'] ?? '1', /^[1-9]\d{0,4}$/)
        },
      ),
      { numRuns: 600 },
    )
  })
})

describe('The guide to the provider', () => {
  const row = ({ codes, subcodes, becomes, reason, detail }: (typeof refusalRules)[number]): string => {
    const listed = codes.map((code) => (typeof code === 'number' ? String(code) : code.join('–'))).join(', ')
    return `| ${listed}${subcodes ? ` with ${subcodes.join(', ')}` : ''} | \`${becomes}\`${reason ? ` \`${reason}\`` : ''} | ${detail} |`
  }

  it('has the table of refusals as it is', () => {
    const guide = readFileSync('docs/provider.md', 'utf8')
    const written = guide.split('\n').filter((line) => /^\| \d/.test(line))
    assert.deepEqual(
      written,
      refusalRules.map(row),
      `write into docs/provider.md:\n${refusalRules.map(row).join('\n')}`,
    )
  })
})
