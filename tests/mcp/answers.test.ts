import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { catalog } from '../../catalog/index.ts'
import { estimateTokens, fitToBudget } from '../../mcp/budget.ts'
import { readView } from '../../mcp/view.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace } from '../servers.ts'

const HOSTILE = `Ada\u200b\u202e${String.fromCodePoint(0xe0041)} 👩‍💻\u0007`

const reads = catalog.filter((op) => op.scope === 'mcp:read')

describe('MCP: slim rows', () => {
  it('name fields that the rows have', () => {
    for (const op of reads) if (op.slim) assert.ok(readView(op, { fields: [...op.slim] }), op.name)
  })

  it('are declared by every list whose rows are long', () => {
    for (const op of reads) {
      const [example] = op.examples
      const rows = (example!.output as { data?: unknown[] }).data
      if (!rows || op.slim) continue
      const tokens = countTokens(JSON.stringify(rows[0]))
      assert.ok(tokens <= 150, `${op.name}: ${tokens} tokens a row, and no slim`)
    }
  })
})

describe('MCP: the size of answers', () => {
  it('is estimated, and not too low', () => {
    const sample = (size: number, character: (n: number) => string): string =>
      Array.from({ length: size }, (_, i) => character((i * 7919) % 65_537)).join('')
    const from = (start: number, count: number) => (n: number) => String.fromCodePoint(start + (n % count))
    for (const [what, text] of Object.entries({
      english: 'Hello, is my order on its way? I have been waiting since Tuesday. '.repeat(50),
      rows: JSON.stringify(reads.map(({ examples }) => examples[0]!.output)),
      russian: 'Здравствуйте, где мой заказ? Я жду уже три дня. '.repeat(50),
      chinese: '您好，我的订单什么时候到？我已经等了三天了。'.repeat(50),
      ideographs: sample(2000, from(0x4e00, 20_000)),
      emoji: sample(1000, from(0x1f300, 700)),
      rare: sample(1000, from(0x20000, 40_000)),
      marks: sample(2000, from(0x300, 100)),
      signs: sample(2000, from(33, 15)),
      digits: sample(2000, from(48, 10)),
    })) {
      const [estimate, actual] = [estimateTokens(text), countTokens(text)]
      assert.ok(estimate >= actual * 0.9 && estimate <= actual * 3, `${what}: ${estimate} for ${actual}`)
    }
  })

  it('has an upper bound where there are no rows to leave out', () => {
    const answer = {
      failures: Array.from({ length: 500 }, (_, row) => ({ row, message: 'x y z '.repeat(100) })),
    }
    const short = fitToBudget(JSON.stringify(answer))
    assert.ok(countTokens(short) <= 20_000)
    assert.match(JSON.parse(short).shortened, /were cut/)
    assert.equal(fitToBudget('{"a":1}'), '{"a":1}')
  })
})

everyDatabase('MCP: what answers show', (server) => {
  let key: string
  before(async () => {
    key = (await makeWorkspace(server())).owner.key
    const rows = Array.from({ length: 90 }, (_, i) => ({
      phone: `+1555010${String(i).padStart(4, '0')}`,
      name: i === 0 ? HOSTILE : `${'漢字'.repeat(100)}${i}`,
      email: `person${i}@example.com`,
      tags: ['VIP'],
    }))
    await doAs(server(), key)('crm_import_contacts', { rows })
  })

  /** Returns a tool's answer, and its text. */
  const call = async (name: string, input: object, as = key): Promise<{ answer: any; text: string }> => {
    const response = await fetch(`${server().url}/mcp?toolsets=all`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${as}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: input },
      }),
    })
    const { result } = (await response.json()) as any
    const { text } = result.content[0]
    assert.deepEqual(result.structuredContent ?? JSON.parse(text), JSON.parse(text))
    return { answer: JSON.parse(text), text }
  }

  const find = (phone: string, more: object = {}) =>
    call('crm_search_contacts', { filter: { phoneNumber: { eq: phone } }, ...more })

  it('texts of outsiders are named by path, without what hides in them', async () => {
    const { answer: page } = await find('15550100000')
    const [row] = page.data
    assert.equal(row.name, 'Ada 👩‍💻')
    assert.deepEqual(page.untrusted_fields, ['/data/*/name'])
    const { answer: whole } = await call('crm_get_contact', { contact_id: row.id })
    assert.equal(whole.name, 'Ada 👩‍💻')
    assert.ok(
      whole.untrusted_fields.includes('/name') && whole.untrusted_fields.includes('/attributes/*/value'),
    )
    const stored = await doAs(server(), key)('crm_get_contact', { contact_id: row.id })
    assert.equal(stored.name, HOSTILE, 'as it is at the other doors')
    assert.equal('untrusted_fields' in stored, false)
    const { answer: only } = await find('15550100000', { fields: ['phone', 'tags.name'] })
    assert.equal(only.untrusted_fields, undefined)
  })

  it('rows show what was asked for', async () => {
    const slim = (await find('15550100001')).answer.data[0]
    assert.deepEqual(Object.keys(slim), ['id', 'name', 'phone', 'dnd', 'starred', 'created_at'])
    assert.deepEqual((await find('15550100001', { detail: 'ids' })).answer.data, [{ id: slim.id }])
    const full = (await find('15550100001', { detail: 'full' })).answer.data[0]
    assert.equal(full.email, 'person1@example.com')
    const rest = await doAs(server(), key)('crm_search_contacts', {
      filter: { phoneNumber: { eq: '15550100001' } },
      detail: 'full',
    })
    assert.deepEqual(full, (rest.data as unknown[])[0])
    const chosen = (await find('15550100001', { fields: ['id', 'email', 'tags.name'] })).answer.data
    assert.deepEqual(chosen, [{ id: slim.id, email: 'person1@example.com', tags: [{ name: 'VIP' }] }])
    const one = await call('crm_get_contact', { contact_id: slim.id, fields: ['email'] })
    assert.deepEqual(one.answer, { email: 'person1@example.com', untrusted_fields: ['/email'] })
  })

  it('wrong arguments name the field and what is allowed', async () => {
    for (const [more, pointer] of [
      [{ fields: ['id', 'mail'] }, '#/fields/1'],
      [{ fields: ['tags.colour'] }, '#/fields/0'],
      [{ fields: [] }, '#/fields'],
      [{ fields: 'id' }, '#/fields'],
      [{ detail: 'everything' }, '#/detail'],
      [{ details: 'ids' }, '#/details'],
    ] as const) {
      const { answer } = await call('crm_search_contacts', more)
      assert.equal(answer.code, 'invalid_input')
      assert.equal(answer.errors[0].pointer, pointer, JSON.stringify(answer))
      assert.ok(answer.errors[0].fix)
      if ('detail' in more)
        assert.equal(answer.errors[0].detail, `must be one of ${answer.errors[0].allowed.join(', ')}`)
    }
  })

  it('a page of what people wrote is small', async () => {
    const workspace = await makeWorkspace(server())
    const text = 'Hello, is my order on its way? I have been waiting for it since last Tuesday, it is a gift.'
    for (let i = 0; i < 26; i++)
      await plantConversation(server(), workspace.id, { name: `Ada Lovelace ${i}`, text })
    const read = (name: string, input: object) => call(name, input, workspace.owner.key)
    const { text: queue, answer } = await read('inbox_search_conversations', {})
    assert.equal(answer.data.length, 25)
    assert.ok(countTokens(queue) <= 5_000, `${countTokens(queue)} tokens`)
    assert.ok(countTokens(queue) / 25 <= 150, `${countTokens(queue)} tokens`)
    const [{ id, contact }] = answer.data
    assert.deepEqual(Object.keys(contact), ['id', 'name', 'phone'])
    const { answer: messages } = await read('inbox_list_messages', { conversation_id: id })
    assert.deepEqual(messages.untrusted_fields.slice(0, 1), ['/data/*/text'])
    assert.equal(messages.data[0].text, text)
    assert.ok(countTokens(JSON.stringify(messages.data[0])) <= 120)
  })

  for (const [what, input, most] of [
    ['a page that nobody asked to be long', {}, 5_000],
    ['the longest page', { limit: 100 }, 20_000],
    ['the longest page of whole rows', { limit: 100, detail: 'full' }, 20_000],
  ] as const)
    it(`${what} has at most ${most} tokens, and the cursor continues where it ends`, async () => {
      const seen: string[] = []
      let cursor: string | undefined
      let pages = 0
      do {
        const { answer, text } = await call('crm_search_contacts', {
          ...input,
          ...(cursor ? { cursor } : {}),
        })
        assert.ok(countTokens(text) <= most, `${countTokens(text)} tokens`)
        assert.ok(cursor !== undefined || answer.total === 90)
        if (answer.next_cursor !== null)
          assert.match(answer.shortened, new RegExp(`first ${answer.data.length} rows`))
        seen.push(...answer.data.map((row: { id: string }) => row.id))
        cursor = answer.next_cursor ?? undefined
        pages++
      } while (cursor !== undefined)
      assert.ok(pages > 1, 'one page was enough')
      assert.equal(new Set(seen).size, 90)
      assert.equal(seen.length, 90)
    })
})
