import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import type { ErrorCode } from '../../catalog/errors.ts'
import { rulesByTopic } from '../../server/domains/templates/lint.ts'
import { refusalRules } from '../../server/provider/adapter/refusal-rules.ts'
import { lookUpOutcome } from '../../server/provider/port.ts'
import type { Answer } from '../peer.ts'
import {
  captureProblem,
  errorAnswer,
  fixture,
  queueAnswers,
  sender,
  sendText,
  signal,
  summarizeProblem,
  TOKEN,
  useAdapterFixture,
} from './adapter-fixture.ts'

useAdapterFixture()

describe('Adapter: errors of the provider', () => {
  // From the protocol notes: code, or code and subcode, to our error.
  const rows: [
    codes: (number | [number, number])[],
    errorCode: ErrorCode,
    reason?: string,
    pointer?: string,
    rule?: string,
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
    [[[100, 2388043]], 'invalid_input', 'template_rules', '#/template/header', 'header.sample_missing'],
    [[[100, 2388047]], 'invalid_input', 'template_rules', '#/template/header/text', 'header.text_characters'],
    [[[100, 2388072]], 'invalid_input', 'template_rules', '#/template/body/text', 'body.variables_form'],
    [[[100, 2388293]], 'invalid_input', 'template_rules', '#/template/body/text', 'body.variables_ratio'],
    [[[100, 2388299]], 'invalid_input', 'template_rules', '#/template/body/text', 'body.variable_edge'],
    [[[100, 2388073]], 'invalid_input', 'template_rules', '#/template/footer/text', 'footer.variables'],
    [[[100, 2388046]], 'invalid_input', 'template_rules', '#/template/name', 'name.form'],
    [
      [
        [100, 2494102],
        [131009, 2494102],
      ],
      'upstream_error',
      'media_refused',
    ],
    [[100, [100, 1], [100, 2388040]], 'upstream_error', 'provider_refused'],
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

  it('known codes map to an error regardless of the HTTP status', async () => {
    for (const [codes, errorCode, reason, pointer, rule] of rows) {
      for (const providerCode of codes) {
        const [code, subcode] = typeof providerCode === 'number' ? [providerCode] : providerCode
        // Unknown codes are mapped by status.
        for (const status of reason === 'provider_refused' ? [400] : [400, 429, 500]) {
          queueAnswers(
            errorAnswer(
              code,
              { ...(subcode === undefined ? {} : { error_subcode: subcode }), fbtrace_id: 'AbC-1_2' },
              status,
            ),
          )
          const problem = await captureProblem(sendText())
          assert.deepEqual(
            summarizeProblem(problem),
            [errorCode, reason, errorCode === 'upstream_unavailable' && reason === undefined],
            `${providerCode} with status ${status}`,
          )
          assert.deepEqual(
            [problem.extras.provider_code, problem.extras.provider_subcode, problem.extras.provider_trace_id],
            [code, subcode, 'AbC-1_2'],
          )
          assert.deepEqual(
            problem.extras.errors?.map((e) => [e.pointer, e.code, e.rule]),
            errorCode === 'invalid_input' ? [[pointer, reason, rule]] : undefined,
          )
        }
      }
    }
  })

  it("a template or link that is refused is the provider's refusal, but for rules of the lint", async () => {
    const template = { name: 'a', language: 'en', category: 'UTILITY', components: [] }
    const link = { message: 'Hi', qrFormat: null }
    const calls = [
      () => fixture.provider.createTemplate('5', template, signal),
      () => fixture.provider.editTemplate('7', { components: [] }, signal),
      () => fixture.provider.createLink(sender, link, signal),
    ]
    for (const [codes, errorCode, reason, , rule] of rows)
      for (const [code, subcode] of codes.map((each) => [each].flat()))
        for (const call of calls) {
          queueAnswers(errorAnswer(code, { error_subcode: subcode, error_user_msg: 'Not like this' }))
          const problem = await captureProblem(call())
          fixture.peer.answers.length = 0
          const expected = errorCode === 'invalid_input' && !rule ? 'upstream_error' : errorCode
          assert.deepEqual([problem.code, problem.extras.reason], [expected, reason], `${code}/${subcode}`)
          assert.match(problem.message, /The provider says: Not like this/)
          assert.equal(problem.extras.errors?.[0]?.rule, rule)
        }
  })

  it('every rule of the lint that the mapping names exists', () => {
    const known = new Set(Object.values(rulesByTopic).flatMap((all) => all.map(({ id }) => id)))
    const named = refusalRules.flatMap(({ rule }) => rule ?? [])
    assert.equal(named.length, 7)
    assert.deepEqual(
      named.filter((id) => !known.has(id)),
      [],
    )
  })

  it('every rule of the mapping is covered by the table above', () => {
    const tested = new Set(rows.flatMap(([codes]) => codes.map((code) => [code].flat().join('/'))))
    for (const { codes, subcodes } of refusalRules) {
      for (const code of codes.flat())
        for (const subcode of subcodes ?? [undefined])
          assert.ok(
            tested.has([code, subcode].filter((part) => part !== undefined).join('/')),
            `${code}/${subcode}`,
          )
    }
  })

  it('unknown codes map by HTTP status, and unclear responses leave the outcome open', async () => {
    const htmlPage = '<html><body>Bad Gateway</body></html>'
    const cases: [Answer, ReturnType<typeof summarizeProblem>][] = [
      [{ status: 400, body: htmlPage }, ['upstream_error', 'provider_refused', false]],
      [{ status: 401, body: '' }, ['upstream_error', 'provider_access', false]],
      [{ status: 403, body: htmlPage }, ['upstream_error', 'provider_access', false]],
      [{ status: 408, body: htmlPage }, ['timeout', undefined, true]],
      [{ status: 429, body: htmlPage }, ['upstream_unavailable', 'throttled', false]],
      [{ status: 500, body: htmlPage }, ['upstream_unavailable', undefined, true]],
      [{ status: 502, body: htmlPage }, ['upstream_unavailable', undefined, true]],
      [{ status: 503, body: { error: 'no' } }, ['upstream_unavailable', undefined, true]],
      [errorAnswer(987654, {}, 500), ['upstream_unavailable', undefined, true]],
      [errorAnswer(987654, { is_transient: true }), ['upstream_unavailable', undefined, true]],
      [errorAnswer('100', {}), ['upstream_error', 'provider_refused', false]],
      [errorAnswer(987654, {}, 200), ['upstream_unavailable', undefined, true]],
      [errorAnswer(132000, {}, 200), ['invalid_input', 'template_mismatch', false]],
      [
        { status: 302, headers: { Location: `${fixture.peer.url}/elsewhere` }, body: '' },
        ['upstream_error', 'provider_refused', false],
      ],
      [{ status: 200, body: htmlPage }, ['upstream_unavailable', undefined, true]],
      [{ status: 200, body: '{"messages":[{"id":"wami' }, ['upstream_unavailable', undefined, true]],
      [{ status: 200, body: { messages: [] } }, ['upstream_unavailable', undefined, true]],
      [{ status: 204 }, ['upstream_unavailable', undefined, true]],
      [{ status: 200, body: `"${'x'.repeat(9 * 1024 * 1024)}"` }, ['upstream_unavailable', undefined, true]],
    ]
    for (const [answer, expected] of cases) {
      fixture.peer.asked.length = 0
      queueAnswers(answer)
      assert.deepEqual(
        summarizeProblem(await captureProblem(sendText())),
        expected,
        JSON.stringify(answer).slice(0, 100),
      )
      assert.equal(fixture.peer.asked.length, 1)
    }
  })

  it('details: phone numbers, user ids and the token are masked', async () => {
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
    for (const [fields, expected] of details) {
      queueAnswers(errorAnswer(100, fields as Record<string, unknown>))
      const problem = await captureProblem(sendText())
      assert.equal(
        problem.message,
        `The provider does not accept a parameter. The provider says: ${expected}`,
      )
    }
    queueAnswers(errorAnswer(100, { message: `${'x'.repeat(5000)}${TOKEN}` }))
    assert.ok((await captureProblem(sendText())).message.length < 400)
  })

  it('Retry-After: from the header, the usage header, or a default', async () => {
    const usageHeader = (...minutes: unknown[]) => ({
      'X-Business-Use-Case-Usage': JSON.stringify({
        5: minutes.map((minute) => ({
          type: 'messaging',
          call_count: 100,
          estimated_time_to_regain_access: minute,
        })),
      }),
    })
    const cases: [number, number, Record<string, string>, string | undefined][] = [
      [130429, 429, {}, '60'],
      [131056, 429, {}, '6'],
      [4, 429, { 'Retry-After': '90' }, '90'],
      [4, 429, usageHeader(3), '180'],
      [4, 429, usageHeader(0), '60'],
      [80008, 429, { 'Retry-After': '10', ...usageHeader(1, 2) }, '120'],
      [4, 429, { 'Retry-After': 'soon' }, '60'],
      [4, 429, { 'Retry-After': '-5' }, '60'],
      [4, 429, { 'Retry-After': '999999999' }, '86400'],
      [4, 429, { 'X-Business-Use-Case-Usage': '{' }, '60'],
      [4, 429, { 'X-Business-Use-Case-Usage': 'null' }, '60'],
      [4, 429, usageHeader('1', null, { a: 1 }), '60'],
      [2, 503, { 'Retry-After': '7' }, '7'],
      [2, 503, {}, undefined],
      [190, 401, { 'Retry-After': '7' }, undefined],
    ]
    for (const [code, status, headers, seconds] of cases) {
      queueAnswers(errorAnswer(code, {}, status, headers))
      assert.equal(
        (await captureProblem(sendText())).headers['Retry-After'],
        seconds,
        JSON.stringify(headers),
      )
    }
    queueAnswers(errorAnswer(4, {}, 429, { 'Retry-After': new Date(Date.now() + 60_000).toUTCString() }))
    const seconds = Number((await captureProblem(sendText())).headers['Retry-After'])
    assert.ok(seconds > 30 && seconds <= 60, String(seconds))
  })

  it('errors of an outcome lookup leave the outcome of the call open', async () => {
    for (const answer of [errorAnswer(190, {}, 401), errorAnswer(4, {}, 429), errorAnswer(131008)]) {
      queueAnswers(answer)
      const problem = await captureProblem(lookUpOutcome(fixture.provider.listLinks(sender, signal)))
      assert.deepEqual(summarizeProblem(problem), ['upstream_unavailable', undefined, true])
    }
  })
})

describe('docs/provider.md', () => {
  const formatRow = ({
    codes,
    subcodes,
    becomes,
    reason,
    rule,
    detail,
  }: (typeof refusalRules)[number]): string => {
    const listedCodes = codes.map((code) => (typeof code === 'number' ? String(code) : code.join('–')))
    const listedSubcodes = subcodes ? ` with ${subcodes.join(', ')}` : ''
    const listedReason = [reason, rule].map((text) => (text ? ` \`${text}\`` : '')).join('')
    return `| ${listedCodes.join(', ')}${listedSubcodes} | \`${becomes}\`${listedReason} | ${detail} |`
  }

  it('the table of errors is up to date', () => {
    const text = readFileSync('docs/provider.md', 'utf8')
    const rows = text.split('\n').filter((line) => /^\| \d/.test(line))
    assert.deepEqual(
      rows,
      refusalRules.map(formatRow),
      `the rows of docs/provider.md must be:\n${refusalRules.map(formatRow).join('\n')}`,
    )
  })
})
